#include "actors/serving/guide.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/copy/program_guess.hpp"

namespace redline::actors {
namespace {

using step = copy::program_state::step;

constexpr std::pair<std::string_view, copy_trust> trusts[] = {
    {"forced", copy_trust::forced}, {"verified", copy_trust::verified}, {"auto", copy_trust::automatic}};

/// A byte here says which op, which file, which unit or which numbers: a wrong one would make another span.
bool names_the_span(step at) {
  return at == step::after_lt || at == step::file_number || at == step::unit_choice || at == step::first_number ||
         at == step::last_number;
}

}  // namespace

std::string_view name_of(copy_trust t) {
  for (const auto& [name, trust] : trusts) {
    if (trust == t) return name;
  }
  return "?";
}

std::string_view name_of(span_reason r) {
  switch (r) {
    case span_reason::option:
      return "option";
    case span_reason::anchors:
      return "anchors";
    case span_reason::confidence:
      return "confidence";
    case span_reason::doubt:
      return "doubt";
    case span_reason::last_:
      break;
  }
  return "?";
}

std::optional<copy_trust> copy_trust_of(std::string_view name) {
  for (const auto& [known, trust] : trusts) {
    if (known == name) return trust;
  }
  return std::nullopt;
}

result<std::shared_ptr<const guide_rules>> copy_rules(std::shared_ptr<const grammar::token_trie> trie,
                                                      const std::vector<std::string>& files,
                                                      const copy_options& options) {
  auto rules = std::make_shared<guide_rules>();
  rules->copy = options;
  if (files.empty() || files.size() > copy::program_shape::files_max) {
    return failure{errc::invalid_argument, "wanted 1 to " + std::to_string(copy::program_shape::files_max) +
                                               " files to copy from, found " + std::to_string(files.size())};
  }
  for (const auto& bytes : files) {
    if (bytes.size() > copy_file_bytes_max) {
      return failure{errc::invalid_argument, "wanted files of at most " + std::to_string(copy_file_bytes_max) +
                                                 " bytes to copy from, found " + std::to_string(bytes.size())};
    }
    if (!trie->can_spell(bytes)) {
      return failure{errc::unsupported_format,
                     "a file to copy from has bytes for which the model's vocabulary has no token"};
    }
    if (!options.token_spans) {
      rules->files.emplace_back(bytes);
      continue;
    }
    rules->file_tokens.push_back(trie->spell(bytes));
    std::vector<std::uint32_t> ends;
    std::uint32_t end = 0;
    for (const token t : rules->file_tokens.back())
      ends.push_back(end += static_cast<std::uint32_t>(trie->tokenizer().piece(t).size()));
    rules->files.emplace_back(bytes, std::move(ends));
  }
  rules->shape = copy::shape_of(rules->files, options.token_spans);
  rules->shape.line_spans = options.line_spans;
  rules->shape.anchors = options.anchors;
  rules->constraint = grammar::copy_constraint(rules->shape);
  rules->grammar = std::make_shared<grammar::compiled_grammar>(std::make_shared<grammar::copy_grammar>(rules->shape),
                                                               std::move(trie));
  return std::shared_ptr<const guide_rules>(std::move(rules));
}

result<std::shared_ptr<const guide_rules>> json_rules(std::shared_ptr<const grammar::token_trie> trie,
                                                      const std::string& schema) {
  auto rules = std::make_shared<guide_rules>();
  rules->constraint = grammar::json_constraint(schema);
  REDLINE_TRY_ASSIGN(auto automaton, grammar::compile_automaton(rules->constraint));
  rules->grammar = std::make_shared<grammar::compiled_grammar>(std::move(automaton), std::move(trie));
  return std::shared_ptr<const guide_rules>(std::move(rules));
}

guide::guide(std::shared_ptr<const guide_rules> rules)
    : rules_(std::move(rules)), state_(rules_->grammar->automaton().begin()) {
  if (is_copy()) reader_.emplace(rules_->shape);
}

bool guide::over() const { return rules_->grammar->automaton().is_terminated(state_); }
bool guide::may_end() const { return rules_->grammar->automaton().is_accepting(state_); }

grammar::constraint guide::where() const {
  grammar::constraint c = rules_->constraint;
  c.state.assign(state_.cells().begin(), state_.cells().end());
  return c;
}

guide::verdict guide::take(token t, std::optional<float> logprob, std::string& text) {
  if (span_) {  // only a span that the model is asked about is open between its tokens
    if (span_->tokens[span_->written] != t) {
      end_span();
      return verdict::span_ended;
    }
    programs().skip_unconstrained_token(state_);
    write_span_token(text);
    return verdict::taken;
  }
  if (!rules_->grammar->accept_token(state_, t)) return verdict::forbidden;
  advance_program(t, logprob, text);
  return verdict::taken;
}

/// The meaning of a token that the grammar has accepted. logprob: the model's own, 0 of what is decided without it.
void guide::advance_program(token t, std::optional<float> logprob, std::string& text) {
  const auto piece = rules_->grammar->trie().tokenizer().piece(t);
  if (!reader_) {
    text += piece;
    return;
  }
  bool counted = false;
  for (const char c : piece) {
    const step at = reader_->state().at;
    // The token may have begun before the choice: "<copy" says which op.
    if (names_the_span(at) && !std::exchange(counted, true)) {
      confidence_known_ = confidence_known_ && logprob.has_value();
      confidence_log_ += logprob.value_or(0);
    }
    const bool in_body = at == step::gen_body;
    if (at == step::first_anchor && copy::is_anchor_byte(c)) anchors_.first += c;
    if (at == step::last_anchor && copy::is_anchor_byte(c)) anchors_.last += c;
    const std::size_t before = text.size();
    const auto event = reader_->feed(c, text);
    REDLINE_ASSERT(event.has_value(), "the reader and the mask follow one grammar");
    if (in_body) {
      gen_text_.append(text, before);
      if (reader_->state().at == step::await_op) {
        program_.emplace_back(copy::gen_op{std::move(gen_text_)});
        gen_text_.clear();
      }
    } else if (reader_->state().at == step::after_lt) {
      confidence_log_ = 0;
      confidence_known_ = true;
      anchors_ = {};
    }
    if (*event == copy::program_reader::event::copy) begin_span();
  }
}

namespace {

/// No line near this one begins alike, so an anchor says which it is.
bool stands_out(const copy::document& file, std::uint32_t line) {
  constexpr std::uint32_t near = 8;
  const auto anchor = [&](std::uint32_t i) { return copy::anchor_of(file.slice(copy::unit::lines, i, i)); };
  const std::uint32_t end = std::min(file.count(copy::unit::lines), line + near);
  for (std::uint32_t i = line > near ? line - near : 1; i <= end; ++i) {
    if (i != line && anchor(i) == anchor(line)) return false;
  }
  return true;
}

}  // namespace

std::pair<bool, span_reason> guide::forces(const copy::copy_op& op) const {
  const auto& o = rules_->copy;
  if (o.trust != copy_trust::automatic) return {o.trust == copy_trust::forced, span_reason::option};
  // A span whose anchors contradict its numbers is wrong, however sure the model was of them.
  if (o.anchors && op.of == copy::unit::lines) {
    const auto& file = rules_->files[op.file - 1];
    const bool agree =
        anchors_ == copy::anchors_of(op, rules_->files) && stands_out(file, op.first) && stands_out(file, op.last);
    return {agree, agree ? span_reason::anchors : span_reason::doubt};
  }
  const bool sure = confidence_known_ && confidence_log_ >= std::log(static_cast<double>(o.confidence_min));
  return {sure, sure ? span_reason::confidence : span_reason::doubt};
}

void guide::begin_span() {
  const copy::copy_op op = reader_->state().op;
  reader_->resume();
  const auto [forced, reason] = forces(op);
  open_span span{
      .what = {.file = op.file, .of = op.of, .first = op.first, .last = op.last, .forced = forced, .reason = reason}};
  span.bytes = rules_->files[op.file - 1].slice(op.of, op.first, op.last);
  if (op.of == copy::unit::tokens) {
    const auto& all = rules_->file_tokens[op.file - 1];
    span.tokens.assign(all.begin() + op.first - 1, all.begin() + op.last);
  } else {
    span.tokens = rules_->grammar->trie().spell(span.bytes);
  }
  programs().resume(state_, span.what.forced ? 0 : static_cast<std::uint32_t>(span.tokens.size()));
  span_ = std::move(span);
}

void guide::write_span_token(std::string& text) {
  open_span& s = *span_;
  const auto piece = rules_->grammar->trie().tokenizer().piece(s.tokens[s.written]);
  ++s.written;
  text += piece;
  s.text += piece.size();
  if (s.written == s.tokens.size()) end_span();
}

void guide::end_span() {
  const bool cut = span_->written < span_->tokens.size();
  note_span(*span_, rules_->files, report_, program_);
  if (cut) state_ = rules_->grammar->automaton().begin();
  span_.reset();
}

/// What was copied as whole units is a copy of them; what lies behind the last whole one is text.
void guide::note_span(const open_span& span, const std::vector<copy::document>& files, copy_report& into,
                      copy::program& program) {
  copied_span done = span.what;
  done.tokens = static_cast<std::uint32_t>(span.written);
  into.spans.push_back(done);
  const auto& file = files[done.file - 1];
  std::uint32_t units = 0;
  std::size_t bytes = 0;
  while (done.first + units <= done.last) {
    const std::size_t more = file.slice(done.of, done.first + units, done.first + units).size();
    if (bytes + more > span.text) break;
    bytes += more;
    ++units;
  }
  if (units > 0) program.emplace_back(copy::copy_op{done.file, done.of, done.first, done.first + units - 1});
  if (span.text > bytes) program.emplace_back(copy::gen_op{span.bytes.substr(bytes, span.text - bytes)});
}

std::optional<guide::decided> guide::next_decided() {
  decided next;
  if (span_ && span_->what.forced) {
    next.id = span_->tokens[span_->written];
    write_span_token(next.text);
    return next;
  }
  if (span_ || over()) return std::nullopt;
  const auto forced = rules_->grammar->jump_forward(state_);
  if (!forced) return std::nullopt;
  next.id = *forced;
  const bool taken = rules_->grammar->accept_token(state_, next.id);
  REDLINE_ASSERT(taken, "a forced token is allowed by the grammar");
  advance_program(next.id, 0.0F, next.text);
  return next;
}

std::span<const token> guide::span_left() const {
  if (!span_) return {};
  return std::span(span_->tokens).subspan(span_->written);
}

std::vector<token> guide::usable(std::vector<token> draft) const {
  const auto& grammar = *rules_->grammar;
  auto s = state_;
  std::size_t kept = 0;
  while (kept < draft.size() && !grammar.automaton().awaits_span(s) && !grammar.automaton().is_terminated(s) &&
         grammar.accept_token(s, draft[kept]))
    ++kept;
  draft.resize(kept);
  return draft;
}

std::vector<token> guide::likely() const {
  if (!is_copy() || span_ || over()) return {};
  const auto& grammar = *rules_->grammar;
  std::vector<token> draft;
  auto s = state_;
  const std::string text =
      copy::guess_rest({reader_->machine(), reader_->state(), program_, gen_text_, anchors_, rules_->files});
  for (std::string_view left = text; !left.empty();) {
    auto t = grammar.jump_forward(s);
    if (!t) t = grammar.trie().longest_token(grammar.automaton(), s, left);
    if (!t || !left.starts_with(grammar.trie().tokenizer().piece(*t)) || !grammar.accept_token(s, *t)) break;
    left.remove_prefix(grammar.trie().tokenizer().piece(*t).size());
    draft.push_back(*t);
  }
  return draft;
}

copy_report guide::report() const {
  copy_report out = report_;
  copy::program program = program_;
  if (span_ && span_->written > 0) note_span(*span_, rules_->files, out, program);
  if (!gen_text_.empty()) program.emplace_back(copy::gen_op{gen_text_});
  out.program = copy::print_program(program, rules_->files.size() > 1);
  return out;
}

}  // namespace redline::actors
