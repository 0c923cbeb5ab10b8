#include "actors/serving/copy_executor.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/copy/program_guess.hpp"

namespace redline::actors {
namespace {

using step = copy::program_state::step;

/// A byte here chooses the op, the file, the unit or the numbers: a wrong one would make another span.
bool chooses_span(step at) {
  return at == step::after_lt || at == step::file_number || at == step::unit_choice || at == step::first_number ||
         at == step::last_number;
}

/// Whether no line nearby begins alike, so that the anchor identifies the line.
bool has_unique_anchor(const copy::document& file, std::uint32_t line) {
  constexpr std::uint32_t near = 8;
  const auto anchor = [&](std::uint32_t i) { return copy::anchor_of(file.slice(copy::unit::lines, i, i)); };
  const std::uint32_t end = std::min(file.count(copy::unit::lines), line + near);
  const auto own = anchor(line);
  for (std::uint32_t i = line > near ? line - near : 1; i <= end; ++i) {
    if (i != line && anchor(i) == own) return false;
  }
  return true;
}

}  // namespace

std::pair<bool, span_reason> decide_trust(const output_rules& rules, const copy::copy_op& op,
                                          const span_evidence& evidence) {
  const auto& o = rules.copy;
  if (o.trust != copy_trust::automatic) return {o.trust == copy_trust::forced, span_reason::option};
  // A span whose anchors contradict its numbers is wrong, however sure the model was of them.
  if (o.anchors && op.of == copy::unit::lines) {
    const auto& file = rules.files[op.file - 1];
    const bool agree = evidence.anchors == copy::anchors_of(op, rules.files) && has_unique_anchor(file, op.first) &&
                       has_unique_anchor(file, op.last);
    return {agree, agree ? span_reason::anchors : span_reason::doubt};
  }
  const bool sure = evidence.logprob_known && evidence.logprob >= std::log(static_cast<double>(o.confidence_min));
  return {sure, sure ? span_reason::confidence : span_reason::doubt};
}

std::vector<token> untokenized_span::spell() const { return rules->grammar->trie().spell(bytes); }

copy_executor::copy_executor(std::shared_ptr<const output_rules> rules)
    : rules_(std::move(rules)), reader_(rules_->shape) {}

void copy_executor::feed(std::string_view piece, std::optional<float> logprob, std::string& text) {
  bool counted = false;
  for (const char c : piece) {
    // The token may have begun before the choice that it makes, as "<copy" does.
    if (chooses_span(reader_.state().at) && !std::exchange(counted, true)) {
      evidence_.logprob_known = evidence_.logprob_known && logprob.has_value();
      evidence_.logprob += logprob.value_or(0);
    }
    feed_byte(c, text);
  }
}

void copy_executor::feed_byte(char c, std::string& text) {
  const step before = reader_.state().at;
  if (before == step::first_anchor && copy::is_anchor_byte(c)) evidence_.anchors.first += c;
  if (before == step::last_anchor && copy::is_anchor_byte(c)) evidence_.anchors.last += c;
  const std::size_t text_before = text.size();
  const auto event = reader_.feed(c, text);
  REDLINE_ASSERT(event.has_value(), "the reader and the mask follow one grammar");
  if (before == step::gen_body) {
    gen_text_.append(text, text_before);
    if (reader_.state().at == step::await_op) {
      program_.emplace_back(copy::gen_op{std::move(gen_text_)});
      gen_text_.clear();
    }
  } else if (reader_.state().at == step::after_lt) {
    evidence_ = {};
  }
  if (*event == copy::program_reader::event::copy) open(reader_.state().op);
}

void copy_executor::open(const copy::copy_op& op) {
  const auto [forced, reason] = decide_trust(*rules_, op, evidence_);
  open_span span{
      .what = {.file = op.file, .of = op.of, .first = op.first, .last = op.last, .forced = forced, .reason = reason}};
  span.bytes = rules_->files[op.file - 1].slice(op.of, op.first, op.last);
  span_ = std::move(span);
  reader_.resume();
}

std::optional<untokenized_span> copy_executor::untokenized() const {
  if (!span_ || span_->what.of == copy::unit::tokens || span_->spelling) return std::nullopt;
  return untokenized_span{rules_, span_->bytes};
}

void copy_executor::tokenize_span(std::vector<token> spelling) {
  REDLINE_ASSERT(untokenized().has_value(), "only a span that has just been opened is tokenized");
  span_->spelling = std::move(spelling);
}

/// All tokens of the open span; none before it is tokenized.
std::span<const token> copy_executor::span_tokens() const {
  const auto& what = span_->what;
  if (what.of == copy::unit::tokens)
    return std::span(rules_->file_tokens[what.file - 1]).subspan(what.first - 1, what.last - what.first + 1);
  return span_->spelling ? std::span<const token>(*span_->spelling) : std::span<const token>{};
}

std::span<const token> copy_executor::span_left() const {
  return span_ ? span_tokens().subspan(span_->inserted_count) : std::span<const token>{};
}

token copy_executor::insert_span_token(std::string& text) {
  open_span& s = *span_;
  const auto tokens = span_tokens();
  REDLINE_ASSERT(s.inserted_count < tokens.size(), "a span is tokenized before it is inserted");
  const token t = tokens[s.inserted_count];
  const auto piece = rules_->grammar->trie().tokenizer().piece(t);
  ++s.inserted_count;
  s.inserted_bytes += piece.size();
  text += piece;
  if (s.inserted_count == tokens.size()) close_span();
  return t;
}

void copy_executor::refuse_span() {
  span_->what.refused = true;
  close_span();
}

void copy_executor::close_span() {
  note_copied(*span_, report_, program_);
  span_.reset();
}

/// Records whole inserted units as a copy of them, and what was inserted after the last whole unit as text.
void copy_executor::note_copied(const open_span& span, copy_report& into, copy::program& program) const {
  copied_span done = span.what;
  done.tokens = static_cast<std::uint32_t>(span.inserted_count);
  into.spans.push_back(done);
  const auto& file = rules_->files[done.file - 1];
  const std::uint32_t units =
      std::min(file.count_whole(done.of, done.first, span.inserted_bytes), done.last - done.first + 1);
  const std::uint32_t last = done.first + units - 1;
  const std::size_t bytes = units > 0 ? file.slice(done.of, done.first, last).size() : 0;
  if (units > 0) program.emplace_back(copy::copy_op{done.file, done.of, done.first, last});
  if (span.inserted_bytes > bytes)
    program.emplace_back(copy::gen_op{std::string(span.bytes.substr(bytes, span.inserted_bytes - bytes))});
}

std::string copy_executor::likely_continuation() const {
  return copy::guess_rest({reader_.machine(), reader_.state(), program_, gen_text_, evidence_.anchors, rules_->files});
}

copy_report copy_executor::report() const {
  copy_report out = report_;
  copy::program program = program_;
  if (span_ && span_->inserted_count > 0) note_copied(*span_, out, program);
  if (!gen_text_.empty()) program.emplace_back(copy::gen_op{gen_text_});
  out.program = copy::print_program(program, rules_->files.size() > 1);
  return out;
}

}  // namespace redline::actors
