#include "actors/generation.hpp"

#include <algorithm>

namespace redline::actors {

generation::generation(generation_request request, std::shared_ptr<const text::tokenizer> words,
                       text::stop_matcher stops)
    : request_(std::move(request)),
      words_(std::move(words)),
      log_(request_.prompt),
      prompt_count_(static_cast<std::uint32_t>(log_.size())),
      output_max_(std::min(request_.tokens_max, request_.context_max - prompt_count_)),
      stops_(std::move(stops)),
      characters_(text::utf8_stream::invalid_bytes::keep) {}

result<generation> generation::make(generation_request request, std::shared_ptr<const text::tokenizer> words) {
  if (request.prompt.empty()) return failure{errc::invalid_argument, "wanted a prompt of at least one token, found none"};
  for (const token t : request.prompt) {
    if (!words->words().contains(t)) {
      return failure{errc::invalid_argument, "wanted token ids from 0 to " + std::to_string(words->size() - 1) +
                                                 " in the prompt, found " + std::to_string(t)};
    }
  }
  if (request.prompt.size() >= request.context_max) {
    return failure{errc::context_length_exceeded,
                   "wanted a prompt of fewer than " + std::to_string(request.context_max) + " tokens, found " +
                       std::to_string(request.prompt.size())};
  }
  if (request.tokens_max == 0) return failure{errc::invalid_argument, "wanted max_tokens of at least 1, found 0"};
  REDLINE_TRY_ASSIGN(auto stops, text::stop_matcher::make(request.stops));
  return generation(std::move(request), std::move(words), std::move(stops));
}

generation::progress generation::commit(std::span<const token> tokens,
                                        std::span<const model::emitted_logprob> logprobs) {
  progress step;
  for (std::size_t i = 0; i < tokens.size() && !step.finished; ++i) {
    const token t = tokens[i];
    if (!request_.ignore_end && words_->is_end_of_generation(t)) {
      step.finished = finish_reason::stop;
      break;
    }
    log_.push_back(t);
    step.tokens.push_back(t);
    if (i < logprobs.size()) step.logprobs.push_back(logprobs[i]);
    step.text += characters_.feed(stops_.feed(words_->piece(t)));
    if (stops_.matched()) step.finished = finish_reason::stop;
    else if (room() == 0) step.finished = finish_reason::length;
  }
  if (step.finished) step.text += characters_.feed(stops_.finish()) + characters_.flush();
  return step;
}

std::vector<token> generation::usable(std::vector<token> draft) const {
  if (draft.size() >= room()) draft.resize(room() == 0 ? 0 : room() - 1);
  const auto strange = [&](token t) { return !words_->words().contains(t); };
  draft.erase(std::find_if(draft.begin(), draft.end(), strange), draft.end());
  return draft;
}

}  // namespace redline::actors
