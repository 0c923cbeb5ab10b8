#include "actors/node/answer_script.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/strict_json.hpp"
#include "runtime/base/utf8.hpp"

namespace redline::actors {
namespace {

/// How much of the remaining text is tokenized to find one token.
constexpr std::size_t look_ahead_bytes = 256;

failure forbidden(std::string_view said, std::string_view rest) {
  constexpr std::size_t shown = 40;
  const auto quote = [](std::string_view text) { return "'" + utf8::sanitize(text) + "'"; };
  const std::string where =
      "at byte " + std::to_string(said.size()) +
      (said.empty() ? "" : ", after " + quote(said.substr(said.size() - std::min(said.size(), shown))));
  const std::string what = rest.empty() ? "it ends" : "it continues with " + quote(rest.substr(0, shown));
  return {errc::invalid_argument, "The scripted answer is not one that the request's format or tools allow: " + where +
                                      ", " + what + ". Change what the script says, or the request."};
}

/// Tokenizes an answer. What a grammar decides without the model has the grammar's tokens. Fails for an answer that the
/// grammar forbids.
result<std::vector<token>> tokens_of(const std::string& said, const output_rules* rules,
                                     const text::tokenizer& tokenizer) {
  std::vector<token> out;
  std::string_view text = said;
  if (rules == nullptr || rules->is_program()) {
    out = tokenizer.encode(text, {.parse_special = true});
    text = {};
    rules = nullptr;
  }
  auto s = rules != nullptr ? rules->grammar->automaton().begin() : grammar::automaton_state{};
  const auto takes = [&](token t) {
    auto after = s;
    if (!text.starts_with(tokenizer.piece(t, true)) || !rules->grammar->accept_token(after, t)) return false;
    s = after;
    return true;
  };
  // What comes after the end of an answer, such as a second call where one is allowed, is left out.
  while (!text.empty() && !rules->grammar->automaton().is_terminated(s)) {
    auto t = rules->grammar->jump_forward(s);
    if (!t) {
      const auto next = tokenizer.encode(text.substr(0, look_ahead_bytes), {.parse_special = true, .continues = true});
      if (!next.empty()) t = next.front();
    }
    bool is_taken = t && takes(*t);
    if (!is_taken) {
      // The usual token may reach beyond what is allowed; a shorter one may not.
      t = rules->grammar->trie().longest_token(rules->grammar->automaton(), s, text);
      is_taken = t && takes(*t);
    }
    if (!is_taken) return forbidden(std::string_view(said).substr(0, said.size() - text.size()), text);
    out.push_back(*t);
    text.remove_prefix(tokenizer.piece(*t, true).size());
  }
  if (rules != nullptr && !rules->grammar->automaton().is_accepting(s)) return forbidden(said, {});
  for (token t = 0; t < static_cast<token>(tokenizer.size()); ++t) {
    if (!tokenizer.is_end_of_generation(t)) continue;
    out.push_back(t);
    return out;
  }
  return out;
}

}  // namespace

result<std::shared_ptr<answer_script>> answer_script::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) return failure{errc::invalid_argument, path + ": cannot be read"};
  REDLINE_TRY_ASSIGN(const auto list, parse_json<nlohmann::json>(bytes));
  const auto wrong = failure{errc::invalid_argument, path + R"(: expected an array of {"when": [texts], "say": text})"};
  if (!list.is_array()) return wrong;
  std::vector<entry> entries;
  for (const auto& one : list) {
    if (!one.is_object() || !one.contains("say") || !one["say"].is_string() || !one.contains("when") ||
        !one["when"].is_array()) {
      return wrong;
    }
    entry e{.when = {}, .say = one["say"].get<std::string>()};
    for (const auto& text : one["when"]) {
      if (!text.is_string()) return wrong;
      e.when.push_back(text.get<std::string>());
    }
    entries.push_back(std::move(e));
  }
  return std::shared_ptr<answer_script>(new answer_script(std::move(entries)));
}

result<void> answer_script::begin(session_id session, std::span<const token> prompt, const output_rules* rules,
                                  const text::tokenizer& tokenizer) {
  const auto text = tokenizer.decode(prompt, {.render_special = true});
  if (!text) return {};
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const entry& e) {
    return std::all_of(e.when.begin(), e.when.end(),
                       [&](const std::string& part) { return text->find(part) != std::string::npos; });
  });
  if (found == entries_.end()) return {};
  REDLINE_TRY_ASSIGN(auto tokens, tokens_of(found->say, rules, tokenizer));
  const std::scoped_lock lock(mutex_);
  if (order_.size() >= answers_max) {
    answers_.erase(order_.front());
    order_.erase(order_.begin());
  }
  order_.push_back(session.value);
  answers_[session.value] = std::move(tokens);
  return {};
}

std::optional<token> answer_script::choose(const row& at) const {
  const std::scoped_lock lock(mutex_);
  const auto found = answers_.find(at.answer);
  if (found == answers_.end()) return std::nullopt;
  const auto& known = found->second;
  return known[std::min<std::uint64_t>(at.index, known.size() - 1)];
}

}  // namespace redline::actors
