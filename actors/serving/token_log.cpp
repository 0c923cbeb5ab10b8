#include "actors/serving/token_log.hpp"

#include <algorithm>

#include "runtime/grammar/syntax/steps.hpp"

namespace redline::actors {

namespace {

// A copied token takes a third of a microsecond. One that a grammar decides takes up to 80: up to 256 bytes that must
// follow are tokenized. So a step takes at most some 0.6 ms, and those of 64 sessions in turn 40.
constexpr std::uint32_t spelling_work = 128;
constexpr std::uint32_t step_work_max = 8 * spelling_work;
constexpr std::uint64_t decided_steps_max = 40'000;  // grammar steps, after which no further token is looked for

std::vector<token_range> turns_that_may_go(const generation_spec& spec) {
  std::vector<token_range> turns = spec.turns.value_or(std::vector<token_range>{});
  std::erase_if(turns, [&](const token_range& t) { return t.begin < spec.eviction.n_keep.value_or(0); });
  return turns;
}

/// The number of tokens that never leave the window.
std::uint32_t pinned_count(const generation_spec& spec, std::size_t prompt_count) {
  auto count = static_cast<std::uint32_t>(prompt_count);
  if (!spec.turns) return spec.eviction.n_keep.value_or(count);
  for (const token_range& t : turns_that_may_go(spec)) count -= t.count();
  return count;
}

// Bytes of a known text that a round tokenizes: half a millisecond, and about as many tokens as a pass takes.
constexpr std::size_t known_bytes_max = 4096;
// Where the text is cut, the last tokens differ from those of the whole.
constexpr std::size_t cut_tokens = 4;

/// A token that a grammar decides has no alternative: its log-probability is a function of the answer so far, and not
/// of whether a draft had the model compute one.
sampling::emitted_logprob certain(token id, std::uint32_t top_count) {
  sampling::emitted_logprob only{.logprob = 0, .top = {}};
  if (top_count > 0) only.top.push_back({id, 0});
  return only;
}

}  // namespace

token_log::token_log(generation_spec spec, std::shared_ptr<const text::tokenizer> tokenizer, text::stop_matcher stops)
    : spec_(std::move(spec)),
      tokenizer_(std::move(tokenizer)),
      log_(std::move(spec_.prompt)),
      prompt_count_(static_cast<std::uint32_t>(log_.size())),
      prompt_left_(prompt_count_),
      output_max_(spec_.tokens_max.value_or(spec_.context_max)),
      window_max_(window_of(spec_)),
      stops_(std::move(stops)),
      characters_(utf8::stream::invalid_bytes::keep) {
  if (spec_.rules) constrained_.emplace(spec_.rules);
  if (is_program()) spec_.known_text.clear();  // it describes the program's result, whose tokens differ
  if (!evicts()) {
    output_max_ = std::min(output_max_, window_max_ - prompt_count_);
    return;
  }
  turns_ = turns_that_may_go(spec_);
  discard_count_ =
      spec_.eviction.n_discard.value_or(std::max(1U, (window_max_ - pinned_count(spec_, prompt_count_)) / 2));
  const std::uint32_t answer = std::min(output_max_, discard_count_);
  if (prompt_count_ + answer > window_max_) take_out(take_turns(prompt_count_ + answer - window_max_));
  log_.shrink_to_fit();  // a prompt may be many windows long
}

std::uint32_t token_log::window_of(const generation_spec& spec) {
  const std::uint32_t asked = spec.eviction.policy == kv::eviction_policy::off ? 0 : spec.eviction.n_ctx;
  return asked == 0 ? spec.context_max : std::min(asked, spec.context_max);
}

std::string context_sentence(std::uint64_t tokens_max) {
  return "This model's maximum context length is " + std::to_string(tokens_max) + " tokens.";
}

std::optional<unknown_token> find_unknown_token(const generation_spec& spec, const text::tokenizer& tokenizer) {
  std::optional<unknown_token> found;
  const auto check = [&](token id, const char* field) {
    if (found || tokenizer.vocab().contains(id)) return;
    found = {field,
             {errc::invalid_argument, "expected token ids from 0 to " + std::to_string(tokenizer.size() - 1) + " in '" +
                                          field + "', found " + std::to_string(id)}};
  };
  for (const auto& [id, bias] : spec.sampling.logit_bias) check(id, "logit_bias");
  for (const token id : spec.stop_tokens) check(id, "stop_token_ids");
  for (const token id : spec.sampling.allowed) check(id, "allowed_token_ids");
  return found;
}

result<token_log> token_log::make(generation_spec spec, std::shared_ptr<const text::tokenizer> tokenizer) {
  if (spec.prompt.empty())
    return failure{errc::invalid_argument, "expected a prompt of at least one token, found none"};
  for (const token t : spec.prompt) {
    if (!tokenizer->vocab().contains(t)) {
      return failure{errc::invalid_argument, "expected token ids from 0 to " + std::to_string(tokenizer->size() - 1) +
                                                 " in the prompt, found " + std::to_string(t)};
    }
  }
  if (auto unknown = find_unknown_token(spec, *tokenizer)) return std::move(unknown->why);
  const std::uint32_t window = window_of(spec);
  const bool evicts = spec.eviction.policy != kv::eviction_policy::off;
  const std::uint64_t stays = evicts && spec.turns ? pinned_count(spec, spec.prompt.size()) : spec.prompt.size();
  if (stays >= window) {
    return failure{errc::context_length_exceeded,
                   context_sentence(window) + " However, your prompt has " + std::to_string(stays) + " tokens" +
                       (stays < spec.prompt.size() ? " without its older turns" : "") +
                       ", and at least one is needed for the answer: send less, or start the server with a larger "
                       "context if the model has one."};
  }
  if (evicts) {
    if (spec.rules) {
      return failure{errc::invalid_argument, "expected no eviction for an answer that follows a grammar, found " +
                                                 std::string(kv::name_of(spec.eviction.policy))};
    }
    const std::uint64_t keep = pinned_count(spec, spec.prompt.size());
    const std::uint64_t discard = spec.eviction.n_discard.value_or(1);
    if (discard == 0 || keep + discard >= window) {
      return failure{
          errc::invalid_argument,
          "expected n_discard of at least 1, and the sum of n_discard and the tokens that stay to be below the " +
              std::to_string(window) + " tokens of the window, found " + std::to_string(discard) + " and " +
              std::to_string(keep)};
    }
  }
  if (evicts && spec.prompt_logprobs) {
    return failure{errc::invalid_argument, "expected no eviction with the log-probabilities of the prompt, found " +
                                               std::string(kv::name_of(spec.eviction.policy))};
  }
  if (spec.tokens_max == 0) return failure{errc::invalid_argument, "expected max_tokens of at least 1, found 0"};
  REDLINE_TRY_ASSIGN(auto stops, text::stop_matcher::make(spec.stops));
  return token_log(std::move(spec), std::move(tokenizer), std::move(stops));
}

token_log::progress token_log::begin() { return go_on(); }

token_log::progress token_log::go_on() {
  if (const auto span = untokenized()) tokenize_span(span->spell());
  progress step{.agreed_count = log_count()};
  append_decided(step);
  close(step);
  return step;
}

token_log::progress token_log::commit(std::span<const token> tokens,
                                      std::span<const sampling::emitted_logprob> logprobs) {
  progress step;
  for (std::size_t i = 0; i < tokens.size() && !step.finished; ++i) {
    const token t = tokens[i];
    if (ends_with(t)) {
      step.finished = finish_reason::stop;
      break;
    }
    std::string text;
    bool is_decided = false;
    if (constrained_) {
      const auto logprob = i < logprobs.size() ? std::optional(logprobs[i].logprob) : std::nullopt;
      const auto outcome = constrained_->accept_token(t, logprob, text);
      is_decided = outcome == constrained_output::acceptance::decided;
      if (outcome == constrained_output::acceptance::span_ended) break;
      if (outcome == constrained_output::acceptance::forbidden) {
        step.finished = finish_reason::failed;
        step.why_not = failure{errc::internal, "the target model wrote a token that the answer's grammar forbids"};
        return step;
      }
      if (fails_by_lost_grammar(step)) return step;
    } else {
      text = tokenizer_->piece(t, spec_.shows_control);
    }
    if (spec_.logprobs && i < logprobs.size())
      step.logprobs.push_back(is_decided ? certain(t, *spec_.logprobs) : logprobs[i]);
    append(t, text, step);
  }
  step.agreed_count = log_count();
  if (!step.finished) append_decided(step);
  close(step);
  return step;
}

/// Whether the token ends the answer, without being part of it.
bool token_log::ends_with(token t) const {
  const auto& stops = spec_.stop_tokens;
  if (std::find(stops.begin(), stops.end(), t) != stops.end()) return true;
  if (!tokenizer_->is_end_of_generation(t)) return false;
  return constrained_ ? constrained_->may_end() && constrained_->span_left().empty() : !spec_.ignore_end;
}

void token_log::append(token t, std::string_view text, progress& into) {
  log_.push_back(t);
  ++output_count_;
  into.tokens.push_back(t);
  if (spec_.trace) into.bytes.push_back(static_cast<std::uint32_t>(text.size()));
  follow_known_text(text);
  into.text += characters_.feed(cut_at_low_indent(stops_.feed(text), into));
  if (into.finished) return;
  if (stops_.matched() || (constrained_ && constrained_->is_complete()))
    into.finished = finish_reason::stop;
  else if (room() == 0)
    into.finished = finish_reason::length;
}

/// The text before the first line with too little indentation. Blank lines do not count.
std::string token_log::cut_at_low_indent(std::string text, progress& into) {
  if (is_shallow_) return {};
  if (spec_.indent_min == 0) return text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      indentation_ = 0;
    } else if (indentation_ && (c == ' ' || c == '\t')) {
      ++*indentation_;
    } else if (indentation_ && c != '\r') {
      if (*indentation_ < spec_.indent_min) {
        text.resize(i);
        is_shallow_ = true;
        into.finished = finish_reason::length;
        return text;
      }
      indentation_.reset();
    }
  }
  return text;
}

token_log::progress token_log::cut() {
  progress step{.finished = finish_reason::length, .agreed_count = log_count()};
  close(step);
  return step;
}

/// Once the answer differs from the known text, nothing more is known.
void token_log::follow_known_text(std::string_view text) {
  if (spec_.known_text.empty()) return;
  if (spec_.known_text.compare(known_at_, text.size(), text) == 0)
    known_at_ += text.size();
  else
    spec_.known_text = {};
}

/// Appends what must follow, and spans that are copied because a program says so, until the model is to be asked again
/// or the step's time is over.
void token_log::append_decided(progress& into) {
  grammar::step_count steps(decided_steps_max);
  for (std::uint32_t work = 0; constrained_ && !into.finished;) {
    if (work >= step_work_max || steps.is_over() || untokenized()) {
      into.is_cut = true;
      return;
    }
    const auto next = constrained_->next_decided(steps);
    if (!next) return;
    if (ends_with(next->id)) {
      into.finished = finish_reason::stop;
      return;
    }
    work += next->is_copied ? 1 : spelling_work;
    if (spec_.logprobs) into.logprobs.push_back(certain(next->id, *spec_.logprobs));
    std::string text;
    constrained_->append_decided(*next, text);
    if (fails_by_lost_grammar(into)) return;
    append(next->id, text, into);
  }
}

/// No way to read the text so far is dropped, so where the state grows too large, the answer is over.
bool token_log::fails_by_lost_grammar(progress& into) const {
  if (!constrained_->is_lost()) return false;
  into.finished = finish_reason::failed;
  into.why_not =
      failure{errc::invalid_argument,
              "after " + std::to_string(output_count_) +
                  " tokens of the answer, the grammar can parse its text in more ways than can be followed at the "
                  "same time, or its rules are open within each other too deeply: write rules so that their beginnings "
                  "distinguish the alternatives, as in e ::= t (\"+\" t | \"-\" t)*"};
  return true;
}

void token_log::close(progress& into) {
  if (into.finished) into.text += characters_.feed(cut_at_low_indent(stops_.finish(), into)) + characters_.flush();
}

std::optional<token_log::evicted> token_log::make_room() {
  if (!evicts() || log_.size() < window_max_) return std::nullopt;
  const evicted gone = turns_.empty() ? oldest_tokens() : take_turns(discard_count_);
  take_out(gone);
  return gone;
}

/// As many of the oldest turns as together have `wanted` tokens, or all.
token_log::evicted token_log::take_turns(std::uint32_t wanted) {
  evicted gone;
  std::size_t taken = 0;
  for (; taken < turns_.size() && gone.count < wanted; ++taken) gone.count += turns_[taken].count();
  if (taken == 0) return gone;
  gone.at = turns_.front().begin;
  turns_.erase(turns_.begin(), turns_.begin() + static_cast<std::ptrdiff_t>(taken));
  for (token_range& t : turns_) {
    t.begin -= gone.count;
    t.end -= gone.count;
  }
  return gone;
}

token_log::evicted token_log::oldest_tokens() const {
  const std::uint32_t at = spec_.turns ? prompt_left_ : spec_.eviction.n_keep.value_or(prompt_count_);
  const std::uint32_t last = log_count() - 1;  // stays, since the next token follows it
  std::uint32_t count = std::min(discard_count_, last - at);
  if (!spec_.eviction.n_discard) {
    // The rest of a line is no good context. A line end is looked for up to a quarter further.
    const std::uint32_t furthest = std::min(last - at, count + count / 4);
    for (std::uint32_t cut = count; cut <= furthest; ++cut) {
      if (!tokenizer_->piece(log_[at + cut - 1]).ends_with('\n')) continue;
      count = cut;
      break;
    }
  }
  return {at, count};
}

void token_log::take_out(evicted gone) {
  const auto first = log_.begin() + gone.at;
  log_.erase(first, first + gone.count);
  prompt_left_ -= std::min(gone.count, prompt_left_ - std::min(prompt_left_, gone.at));
  evicted_count_ += gone.count;
}

std::vector<token> token_log::usable(std::vector<token> draft) const {
  if (draft.size() >= round_room()) draft.resize(round_room() == 0 ? 0 : round_room() - 1);
  const auto strange = [&](token t) { return !tokenizer_->vocab().contains(t); };
  draft.erase(std::find_if(draft.begin(), draft.end(), strange), draft.end());
  grammar::step_count steps(constrained_output::draft_steps_max);
  return constrained_ ? constrained_->usable(std::move(draft), steps) : draft;
}

std::vector<token> token_log::known_draft() const {
  if (known_at_ >= spec_.known_text.size()) return {};
  const auto rest = std::string_view(spec_.known_text).substr(known_at_);
  auto draft = tokenizer_->encode(rest.substr(0, known_bytes_max), {.continues = true});
  if (rest.size() > known_bytes_max) draft.resize(draft.size() - std::min(draft.size(), cut_tokens));
  return usable(std::move(draft));
}

std::vector<token> token_log::span_draft() const {
  if (!constrained_ || round_room() == 0) return {};
  const auto left = constrained_->span_left();
  const auto fits = left.first(std::min<std::size_t>(left.size(), round_room() - 1));
  return {fits.begin(), fits.end()};
}

}  // namespace redline::actors
