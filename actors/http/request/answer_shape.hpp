#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/http/fields/json.hpp"
#include "actors/http/request/answer_writer.hpp"
#include "actors/http/request/generation_request.hpp"

namespace redline::api {

/// What is the same in every object of one response.
struct response_head {
  endpoint from = endpoint::chat;
  std::string id;  // see response_id
  std::int64_t created_seconds = 0;
  std::string model;                               // the canonical name that served
  std::string system_fingerprint;                  // build and model digest; empty: null
  bool shows_logprobs = true;                      // of the tokens that are given
  bool shows_ids = false;                          // of these and of the prompt's
  bool tokens_as_ids = false;                      // log-probabilities name tokens by them
  std::vector<std::string> fields{};               // native: those that are sent; empty: all
  bool is_list = false;                            // native: the choices as an array
  std::shared_ptr<const json> settings{};          // native: see native_settings; null: they are not sent
  std::uint32_t context_tokens_max = 0;            // native: to see whether the context cut an answer
  std::uint32_t prompt_tokens = 0;                 // of all prompts, where that is known when the answer begins
  bool echoes = false;                             // choices begin with their prompts
  std::uint32_t top_logprobs = 0xffffffffU;        // alternatives that are shown, of those that are there
  std::optional<std::uint32_t> prompt_logprobs{};  // alternatives in vLLM's field of that name; absent: no field
};

/// Another API's way to write answers, with what its answers repeat of the request.
struct answer_shape {
  answer_shape() = default;
  virtual ~answer_shape() = default;
  answer_shape(const answer_shape&) = delete;
  answer_shape& operator=(const answer_shape&) = delete;
  [[nodiscard]] virtual std::unique_ptr<answer_writer> make_writer(const response_head& head) const = 0;
};

}  // namespace redline::api
