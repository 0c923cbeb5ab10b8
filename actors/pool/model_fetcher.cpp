#include "actors/pool/model_fetcher.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "actors/prompts/known_phrases.hpp"
#include "runtime/architecture/shape_keys.hpp"
#include "runtime/base/hex.hpp"
#include "runtime/base/size_limits.hpp"
#include "runtime/base/utf8.hpp"
#include "runtime/gguf/file_digest.hpp"
#include "runtime/gguf/gguf_file.hpp"

namespace redline::actors {
namespace {

constexpr microseconds part_patience{2'000'000};  // then it is asked for again, the second time elsewhere
constexpr microseconds retry_pause{250'000};      // after a source could not be reached
constexpr std::size_t models_max = 64;
constexpr std::size_t sources_max = 256;  // per header, including refused ones
constexpr std::size_t aliases_max = 64;
constexpr std::size_t kinds_max = 16;        // numerics of one model that clients are shown
constexpr std::size_t shown_bytes_max = 80;  // limit of a name in the log
constexpr std::size_t name_bytes_max = 256;  // as in a request

/// Whether requests can use this name and lists can show it.
bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= name_bytes_max && utf8::valid_prefix_bytes(text) == text.size() &&
         std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

/// Why a part is useless; empty if it is not.
std::string find_problem(const header_part& m, std::uint64_t total) {
  if (m.bytes.empty()) return "it has another header";
  if (m.total > sizes::header_bytes_max) {
    return "expected a header of at most " + std::to_string(sizes::header_bytes_max) + " bytes, found " +
           std::to_string(m.total);
  }
  if (m.offset != 0 && m.total != total) return "it reported two different lengths of the header";
  const auto left = m.total - std::min(m.total, m.offset);
  const auto expected = std::min<std::uint64_t>(left, sizes::header_part_bytes_max);
  if (m.bytes.size() == expected) return {};
  return "expected a part of " + std::to_string(expected) + " bytes, found " + std::to_string(m.bytes.size());
}

}  // namespace

bool join_card(process_card& all, const process_card& one) {
  const process_card before = all;
  std::set<std::string> names(one.aliases.begin(), one.aliases.end());
  names.insert(all.aliases.begin(), all.aliases.end());
  names.insert({all.name, one.name});
  all.name = std::min(all.name, one.name);
  names.erase(all.name);
  std::erase_if(names, [](const std::string& alias) { return !is_name(alias); });
  all.aliases.assign(names.begin(), names.end());
  if (all.aliases.size() > aliases_max) all.aliases.resize(aliases_max);
  all.context = std::min(all.context, one.context);
  all.numerics = std::min(all.numerics, one.numerics);
  return all != before;
}

model_fetcher::model_fetcher(actor::actor_context& context, model_fetcher_options options)
    : actor_of(context), options_(std::move(options)), work_(context, options_.pool) {}

// ---- which models there are ----------------------------------------------------------------------------------------

void model_fetcher::on(const fetch_model& m) {
  const process_card& card = m.card;
  const auto refuse = [&](const std::string& why) {
    context().log(log_level::warning,
                  "a worker's model " + quote_bytes(card.name, shown_bytes_max) + " is not served: " + why,
                  {{"host", quote_bytes(card.host, shown_bytes_max)}, {"model", to_hex(card.model)}});
  };
  if (card.model == 0 || card.header == 0 || card.context == 0 || !is_name(card.name)) {
    return refuse("its card lacks a digest, the context, or a name of 1 to " + std::to_string(name_bytes_max) +
                  " bytes of printable text");
  }
  if (models_.size() >= models_max && !models_.contains(card.model)) {
    return refuse("there are " + std::to_string(models_max) + " models already, which is the maximum");
  }
  const auto [at, is_new] = models_.try_emplace(card.model);
  known_model& known = at->second;
  if (is_new) known.card = card;
  if (known.card.header != card.header || known.card.vocabulary != card.vocabulary) {
    return refuse("another worker reports a different header or vocabulary for the same file");
  }
  bool has_changed = join_card(known.card, card) || is_new;
  if (is_name(card.numerics) && known.kinds.size() < kinds_max && known.kinds.insert(card.numerics).second) {
    has_changed = true;
  }
  if (has_changed) {
    known.revision = next_attempt_++;
    known.is_shown = false;
  }

  headers::value_type& h = *headers_.try_emplace(card.header).first;
  auto& sources = h.second.sources;
  const auto& refused = h.second.refused;
  const bool is_known = std::find(sources.begin(), sources.end(), m.source) != sources.end();
  if (!is_known && !refused.contains(m.source) && sources.size() + refused.size() < sources_max) {
    sources.push_back(m.source);
  }
  if (known.is_shown) return;
  if (h.second.now == stage::ready) {
    make_model(*at);
  } else if (h.second.now == stage::waiting) {
    ask(h);
  }
}

void model_fetcher::on(const lose_model& m) {
  const auto at = models_.find(m.model);
  if (!m.numerics.empty()) {
    if (at != models_.end()) lose_kind(*at, m.numerics);
    return;
  }
  options_.shelf->remove(m.model);
  if (at != models_.end()) forget(at);
}

void model_fetcher::lose_kind(models::value_type& m, const std::string& numerics) {
  known_model& known = m.second;
  if (known.kinds.erase(numerics) == 0 || known.kinds.empty()) return;
  known.card.numerics = *known.kinds.begin();
  known.revision = next_attempt_++;
  known.is_shown = false;
  const auto header = headers_.find(known.card.header);
  if (header != headers_.end() && header->second.now == stage::ready) make_model(m);
}

void model_fetcher::forget(models::iterator model) {
  const std::uint64_t header = model->second.card.header;
  models_.erase(model);
  const auto needs = [&](const auto& other) { return other.second.card.header == header; };
  if (std::none_of(models_.begin(), models_.end(), needs)) headers_.erase(header);
}

// ---- from a worker to a header -------------------------------------------------------------------------------------

void model_fetcher::ask(headers::value_type& h) {
  if (h.second.sources.empty()) {
    h.second.now = stage::waiting;
    return;
  }
  h.second.now = stage::asking;
  h.second.attempt = next_attempt_++;
  context().send(h.second.sources.front(), read_header{h.first, h.second.bytes.size()});
  context().after(part_patience, fetch_due{h.first, h.second.attempt});
}

void model_fetcher::pause(headers::value_type& h) {
  h.second.now = stage::pausing;
  h.second.attempt = next_attempt_++;
  context().after(retry_pause, fetch_due{h.first, h.second.attempt});
}

void model_fetcher::on(const header_part& m) {
  const auto at = headers_.find(m.header);
  if (at == headers_.end()) return;
  header_state& h = at->second;
  const bool was_asked_for =
      h.now == stage::asking && h.sources.front() == context().sender() && m.offset == h.bytes.size();
  if (!was_asked_for) return;
  if (const auto why = find_problem(m, h.total); !why.empty()) return refuse_source(*at, why);
  h.total = m.total;
  h.bytes += m.bytes;
  h.is_repeated = false;
  if (h.bytes.size() < h.total) {
    ask(*at);
  } else {
    parse_later(*at);
  }
}

void model_fetcher::on(const fetch_due& m) {
  const auto at = headers_.find(m.header);
  if (at == headers_.end() || at->second.attempt != m.attempt) return;
  header_state& h = at->second;
  if (h.now != stage::asking && h.now != stage::pausing) return;
  const bool was_silent = h.now == stage::asking && std::exchange(h.is_repeated, true);
  if (was_silent && h.sources.size() > 1) {
    h.sources.push_back(h.sources.front());
    leave_source(h);
  }
  ask(*at);
}

/// A header comes from a single source, so that it is clear which source sent wrong bytes.
void model_fetcher::leave_source(header_state& h) {
  h.sources.pop_front();
  h.bytes.clear();
  h.is_repeated = false;
}

void model_fetcher::on(const actor::undeliverable& m) {
  if (m.what != read_header::id) return;
  for (auto& h : headers_) {
    const auto& sources = h.second.sources;
    if (h.second.now != stage::asking || sources.front() != m.to) continue;
    // A source that comes back is named again. The only source is tried until its model is lost.
    if (sources.size() > 1) leave_source(h.second);
    pause(h);
  }
}

void model_fetcher::refuse_source(headers::value_type& h, const std::string& why) {
  const actor::address who = h.second.sources.front();
  context().log(log_level::warning, "a worker is no longer asked for a model's header: " + why,
                {{"worker", to_string(who)}, {"header", to_hex(h.first)}});
  h.second.refused.insert(who);
  leave_source(h.second);
  ask(h);
}

// ---- from a header to a model --------------------------------------------------------------------------------------

result<model_fetcher::parsed_header> model_fetcher::parse(const std::string& bytes) {
  const auto raw = std::as_bytes(std::span(bytes));
  REDLINE_TRY_ASSIGN(const auto file, gguf::gguf_file::from_bytes({raw.begin(), raw.end()}, "a worker's model"));
  parsed_header out;
  REDLINE_TRY_ASSIGN(out.tokenizer, text::tokenizer::from_file(*file));
  if (auto trie = grammar::token_trie::make(out.tokenizer)) out.token_trie = std::move(*trie);
  REDLINE_TRY_ASSIGN(auto prompts, prompt_builder::make(out.tokenizer));
  out.prompts = std::make_shared<prompt_builder>(std::move(prompts));
  out.known_phrases = known_phrases(*file);
  out.has_mtp = architecture::has_mtp(*file);
  out.keeps_states = architecture::keeps_states(*file);
  return out;
}

void model_fetcher::parse_later(headers::value_type& h) {
  struct reading {
    bool is_what_was_asked_for = false;
    result<parsed_header> parsed = failure{};
  };
  const std::uint64_t digest = h.first;
  const std::uint64_t attempt = h.second.attempt = next_attempt_++;
  h.second.now = stage::parsing;
  const std::size_t count = h.second.bytes.size();
  auto job = [bytes = std::exchange(h.second.bytes, {}), digest] {
    if (gguf::compute_header_digest(bytes) != digest) return reading{};
    return reading{true, parse(bytes)};
  };
  const auto then = [this, digest, attempt](result<reading> done) {
    const auto at = headers_.find(digest);
    if (at == headers_.end() || at->second.attempt != attempt) return;
    if (done && !done->is_what_was_asked_for) {
      return refuse_source(*at, "the digest of its bytes is not the one it reported");
    }
    if (!done || !done->parsed) {
      at->second.now = stage::unusable;
      const failure& why = done ? done->parsed.error() : done.error();
      return context().log(log_level::error, "a model cannot be served: " + why.describe(),
                           {{"header", to_hex(digest)}});
    }
    at->second.now = stage::ready;
    at->second.parsed = std::move(*done->parsed);
    make_models(digest);
  };
  if (!work_.run(tenant_id{0}, count, std::move(job), then)) pause(h);
}

void model_fetcher::make_models(std::uint64_t header) {
  for (auto& m : models_) {
    if (m.second.card.header == header && !m.second.is_shown) make_model(m);
  }
}

void model_fetcher::make_model(models::value_type& m) {
  const std::uint64_t revision = m.second.revision;
  const auto job = [from = headers_.at(m.second.card.header).parsed, card = m.second.card, kinds = m.second.kinds,
                    partners_for = options_.partners_for, defaults = options_.draft_defaults] {
    auto made = std::make_shared<served_model>();
    made->name = card.name;
    made->add_names(card.aliases);
    made->digest = card.model;
    made->computed_by.assign(kinds.begin(), kinds.end());
    made->fingerprint = make_fingerprint(card.model, numerics_id(card.numerics));
    made->prompts = from.prompts;
    made->draft_defaults = defaults;
    made->known_phrases = from.known_phrases;
    made->has_mtp = from.has_mtp;
    made->keeps_states = from.keeps_states;
    made->answers = std::make_shared<answer_factory>(
        answer_factory::parts{.tokenizer = from.tokenizer,
                              .token_trie = from.token_trie,
                              .context_max = card.context,
                              .partners_for = [partners_for, card](draft::method how, actor::address client) {
                                return partners_for(card, how, client);
                              }});
    return made;
  };
  const auto then = [this, digest = m.first, revision](result<std::shared_ptr<served_model>> made) {
    const auto at = models_.find(digest);
    if (at == models_.end() || at->second.revision != revision) return;
    if (!made) return context().log(log_level::error, "a model cannot be served: " + made.error().describe());
    show(at, std::move(*made));
  };
  if (!work_.run(tenant_id{0}, 0, job, then)) pause(*headers_.find(m.second.card.header));
}

void model_fetcher::show(models::iterator m, std::shared_ptr<const served_model> made) {
  if (made->answers->tokenizer()->digest() != m->second.card.vocabulary) {
    context().log(log_level::warning,
                  "model '" + made->name + "' is not served: its vocabulary is not the one that its worker reported");
    return forget(m);
  }
  const std::string name = made->name;
  options_.shelf->publish(std::move(made));
  m->second.is_shown = true;
  context().log(log_level::info, "model '" + name + "' is served", {{"model", to_hex(m->first)}});
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::model_fetcher>;
