#include "bench/studies/edits/copy_study.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <unordered_map>

#include "bench/studies/common/statistics.hpp"
#include "runtime/copy/oracle.hpp"
#include "runtime/grammar/copy_grammar.hpp"

namespace redline::studies {

double run_cost::speed_up() const { return ratio(steps_ms, run_ms); }
double run_cost::saving() const { return all_logits_ms > 0 ? 1 - ratio(run_ms, all_logits_ms) : 0; }

speed_up_curve::speed_up_curve(const std::vector<run_cost>& costs, double ms_per_decoded_token) : costs_(costs) {
  for (auto& p : costs_) p.steps_ms = p.tokens * ms_per_decoded_token;
}

double speed_up_curve::at(double tokens) const {
  const auto above = std::find_if(costs_.begin(), costs_.end(), [&](const run_cost& p) { return p.tokens >= tokens; });
  if (above == costs_.end()) return costs_.back().speed_up();
  if (above == costs_.begin()) return costs_.front().speed_up();
  const auto below = above - 1;
  const double share = std::log(tokens / below->tokens) / std::log(static_cast<double>(above->tokens) / below->tokens);
  return std::exp(std::log(below->speed_up()) * (1 - share) + std::log(above->speed_up()) * share);
}

std::uint64_t copy_cover::copied() const { return std::accumulate(spans.begin(), spans.end(), std::uint64_t{0}); }
double copy_cover::share() const { return ratio(static_cast<double>(copied()), static_cast<double>(tokens)); }

namespace {

double steps_of_spans(const std::vector<std::uint32_t>& spans, const speed_up_curve& s) {
  double steps = 0;
  for (const auto n : spans) steps += n / s.at(n);
  return steps;
}

std::vector<copy::document> file_of(const known_edit& e) { return {copy::document(e.task.before)}; }

}  // namespace

double copy_cover::bound(const speed_up_curve& s) const {
  const auto all = static_cast<double>(tokens);
  return ratio(all, all - static_cast<double>(copied()) + steps_of_spans(spans, s));
}

double copy_cover::program_bound(const speed_up_curve& s) const {
  return ratio(static_cast<double>(tokens), static_cast<double>(asked) + steps_of_spans(spans, s));
}

copy_cover& copy_cover::operator+=(const copy_cover& o) {
  tokens += o.tokens;
  asked += o.asked;
  spans.insert(spans.end(), o.spans.begin(), o.spans.end());
  return *this;
}

std::optional<std::vector<token>> program_tokens(const output_rules& rules, const std::string& program,
                                                 std::uint64_t* asked) {
  const auto& grammar = *rules.grammar;
  const auto& programs = static_cast<const grammar::copy_grammar&>(grammar.automaton());
  std::vector<token> out;
  grammar::automaton_state s = programs.begin();
  for (std::string_view left = program; !left.empty() || programs.awaits_span(s);) {
    if (programs.awaits_span(s)) {
      const auto op = programs.unpack(s).op;
      const auto span = grammar.trie().spell(rules.files[op.file - 1].slice(op.of, op.first, op.last));
      out.insert(out.end(), span.begin(), span.end());
      programs.resume(s, 0);
      continue;
    }
    auto t = grammar.jump_forward(s);
    if (!t) {
      t = grammar.trie().longest_token(programs, s, left);
      if (asked != nullptr) ++*asked;
    }
    if (!t || !left.starts_with(grammar.trie().tokenizer().piece(*t)) || !grammar.accept_token(s, *t))
      return std::nullopt;
    left.remove_prefix(grammar.trie().tokenizer().piece(*t).size());
    out.push_back(*t);
  }
  return out;
}

copy_cover line_cover(const known_edit& e, const std::shared_ptr<const grammar::token_trie>& trie) {
  copy_cover c{.tokens = trie->spell(e.after).size()};
  const auto files = file_of(e);
  const auto program = copy::shortest_program(files, copy::document(e.after));
  for (const auto& op : program) {
    const auto* span = std::get_if<copy::copy_op>(&op);
    if (span == nullptr) continue;
    c.spans.push_back(
        static_cast<std::uint32_t>(trie->spell(files[0].slice(span->of, span->first, span->last)).size()));
  }
  const auto rules = make_copy_rules(trie, {e.task.before}, {});
  if (rules) static_cast<void>(program_tokens(**rules, copy::print_program(program, false), &c.asked));
  return c;
}

copy_cover token_cover(const known_edit& e, const grammar::token_trie& trie, std::uint32_t span_min) {
  const auto before = trie.spell(e.task.before);
  const auto after = trie.spell(e.after);
  const auto pair_at = [](const std::vector<token>& t, std::size_t i) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(t[i])) << 32 | static_cast<std::uint32_t>(t[i + 1]);
  };
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> where;
  for (std::uint32_t i = 0; i + 1 < before.size(); ++i) where[pair_at(before, i)].push_back(i);
  copy_cover c{.tokens = after.size()};
  for (std::size_t at = 0; at + 1 < after.size();) {
    std::size_t longest = 0;
    if (const auto found = where.find(pair_at(after, at)); found != where.end()) {
      for (const std::uint32_t from : found->second) {
        const auto [end, other] = std::mismatch(after.begin() + static_cast<std::ptrdiff_t>(at), after.end(),
                                                before.begin() + from, before.end());
        longest = std::max(longest, static_cast<std::size_t>(end - after.begin()) - at);
      }
    }
    if (longest >= span_min) c.spans.push_back(static_cast<std::uint32_t>(longest));
    at += longest >= span_min ? longest : 1;
  }
  return c;
}

namespace {

/// Writes an answer as a clumsy model would, with the code that sessions use.
class clumsy_writer {
 public:
  clumsy_writer(const clumsy_model& m, const known_edit& e, std::shared_ptr<const output_rules> rules)
      : model_(m), edit_(e), rules_(std::move(rules)), output_(rules_), random_(m.seed), opinions_(~m.seed) {}

  bool run() {
    plan(0);
    grammar::step_count steps;
    for (int tokens = 0; tokens < tokens_max; ++tokens) {
      if (const auto next = output_.next_decided(steps)) {
        std::string text;
        output_.append_decided(*next, text);
        follow(next->id, text);
      } else if (output_.is_complete()) {
        return text_ == edit_.after;
      } else if (!choose()) {
        return false;
      }
      if (!edit_.after.starts_with(text_)) return false;
    }
    return false;
  }

 private:
  static constexpr int tokens_max = 20'000;
  static constexpr int plans_max = 200;

  /// Chooses the model's next token.
  bool choose() {
    const auto& index = rules_->grammar->trie();
    std::string text;
    if (const auto span = output_.span_left(); !span.empty()) {
      const bool agrees =
          std::string_view(edit_.after).substr(text_.size()).starts_with(index.tokenizer().piece(span.front()));
      const token other = span.front() == 0 ? 1 : 0;
      if (output_.accept_token(agrees ? span.front() : other, std::nullopt, text) ==
          constrained_output::acceptance::taken)
        text_ += text;
      inside_span_ = !output_.span_left().empty();
      return true;
    }
    const grammar::automaton_state here(output_.grammar_state());
    const auto& programs = static_cast<const grammar::copy_grammar&>(rules_->grammar->automaton());
    const auto at = programs.unpack(here).at;
    // The last token of a text may contain the "<" of the next op.
    const bool after_lt = at == copy::program_state::step::after_lt && !begins_op_;
    begins_op_ = at == copy::program_state::step::await_op;
    if (model_.plans_anew && (begins_op_ || after_lt) && !plan(after_lt ? 1 : 0)) return false;
    const auto t = index.longest_token(programs, here, std::string_view(program_).substr(written_));
    if (!t || output_.accept_token(*t, logprob(), text) != constrained_output::acceptance::taken) return false;
    follow(*t, text);
    return true;
  }

  /// Follows a token that may belong to the program or to a span.
  void follow(token t, const std::string& text) {
    const auto piece = rules_->grammar->trie().tokenizer().piece(t);
    text_ += text;
    if (std::string_view(program_).substr(written_).starts_with(piece) && !inside_span_) written_ += piece.size();
    inside_span_ = !output_.span_left().empty();
  }

  /// Plans the rest of the new file; `written` bytes of the program exist already.
  bool plan(std::size_t written) {
    if (++plans_ > plans_max) return false;
    auto p = copy::shortest_program(rules_->files, copy::document(edit_.after.substr(text_.size())));
    const auto says = p;
    for (auto& op : p) {
      if (auto* span = std::get_if<copy::copy_op>(&op)) move(*span);
    }
    print(p, says);
    written_ = written;
    return true;
  }

  void move(copy::copy_op& span) {
    const auto off = [&] {
      return std::uniform_int_distribution<std::int64_t>(-std::int64_t{model_.lines}, model_.lines)(random_);
    };
    const std::int64_t count = rules_->files[0].count(copy::unit::lines);
    const std::int64_t first = std::clamp<std::int64_t>(span.first + off(), 1, count);
    span.last = static_cast<std::uint32_t>(std::clamp<std::int64_t>(span.last + off(), first, count));
    span.first = static_cast<std::uint32_t>(first);
  }

  /// The anchors name the lines that the model means, the numbers those that it writes.
  void print(const copy::program& written, const copy::program& meant) {
    program_.clear();
    ops_.clear();
    for (std::size_t i = 0; i < written.size(); ++i) {
      std::string op = copy::print_program({written[i]}, false);
      op.resize(op.size() - end_of_programs.size());
      if (const auto* span = std::get_if<copy::copy_op>(&meant[i]); span != nullptr && rules_->copy.anchors) {
        const auto says = copy::anchors_of(*span, rules_->files);
        op.resize(op.size() - 2);
        op += " first=\"" + says.first + "\" last=\"" + says.last + "\"/>";
      }
      program_ += op;
      const bool right = written[i] == meant[i];
      ops_.push_back({program_.size(), std::bernoulli_distribution(model_.knows)(opinions_) == right});
    }
    program_ += end_of_programs;
  }

  /// The log probability of the program's next token: certain, or even odds.
  [[nodiscard]] float logprob() const {
    const auto op = std::find_if(ops_.begin(), ops_.end(), [&](const planned_op& o) { return written_ < o.end; });
    return op == ops_.end() || op->sure ? 0.0F : std::log(0.5F);
  }

  static constexpr std::string_view end_of_programs = "</program>";
  struct planned_op {
    std::size_t end = 0;  // position in program_
    bool sure = true;
  };

  const clumsy_model& model_;
  const known_edit& edit_;
  std::shared_ptr<const output_rules> rules_;
  constrained_output output_;
  std::mt19937 random_;
  std::mt19937 opinions_;  // a separate generator, so that ends move alike whatever the trust
  std::string program_;
  std::vector<planned_op> ops_;
  std::size_t written_ = 0;
  bool inside_span_ = false;
  bool begins_op_ = false;  // whether the last token did
  int plans_ = 0;
  std::string text_;
};

}  // namespace

bool writes_exactly(const clumsy_model& m, const known_edit& e, const std::shared_ptr<const grammar::token_trie>& trie,
                    const copy_options& how) {
  const auto rules = make_copy_rules(trie, {e.task.before}, how);
  return rules && clumsy_writer(m, e, *rules).run();
}

std::vector<mask_cost> price_masks(const std::shared_ptr<const grammar::token_trie>& trie) {
  const auto us = [](const std::function<void()>& work) {
    const auto began = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
  };
  const auto program = grammar::copy_constraint({.files = {{480, 0}}, .anchors = true});
  const auto schema = grammar::text_constraint(
      {.text =
           R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"note":{"type":"string","maxLength":80}},"required":["name"]})"});
  struct case_of {
    const char* place;
    const grammar::constraint& grammar;
    std::string_view text;
  };
  const case_of cases[] = {{"program: a forced word", program, "<co"},
                           {"program: which op", program, "<"},
                           {"program: first number", program, "<copy lines=\"1"},
                           {"program: last number", program, "<copy lines=\"12-"},
                           {"program: an anchor", program, "<copy lines=\"12-14\" first=\"x"},
                           {"program: a text", program, "<gen>x"},
                           {"program: a text after '<'", program, "<gen><"},
                           {"JSON: a member", schema, "{"},
                           {"JSON: a string", schema, "{\"name\":\"x"},
                           {"JSON: a string with maxLength", schema, "{\"name\":\"x\",\"note\":\"x"},
                           {"JSON: after a value", schema, "{\"name\":\"x\""}};
  std::vector<mask_cost> out;
  for (const auto& c : cases) {
    grammar::constraint at = c.grammar;
    std::vector<double> first, again;
    for (int i = 0; i < 15; ++i) {
      grammar::grammar_cache grammars(trie);
      const auto entry = grammars.find(at);
      if (!entry) return out;
      const auto& automaton = (*entry)->grammar->automaton();
      auto s = automaton.begin();
      for (const char b : c.text) static_cast<void>(automaton.advance(s, static_cast<std::uint8_t>(b)));
      at.state.assign(s.cells().begin(), s.cells().end());
      // A row's cost: its mask, and the step after the token that it chose.
      const auto row = [&] {
        grammar::grammar_matcher w(**grammars.find(at), at);
        const auto mask = w.next_token_mask();
        for (std::size_t k = 0; k < mask.size(); ++k) {
          if (mask[k] == 0) continue;
          static_cast<void>(
              w.accept_token(static_cast<token>(k * 64 + static_cast<std::size_t>(std::countr_zero(mask[k])))));
          break;
        }
      };
      first.push_back(us(row));
      again.push_back(us(row));
    }
    out.push_back({c.place, percentile(first, 50), percentile(again, 50)});
  }
  return out;
}

}  // namespace redline::studies
