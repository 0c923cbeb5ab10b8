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

/// The values that every object of one response shares.
struct response_head {
  endpoint from = endpoint::chat;
  std::string id;  // see response_id
  std::int64_t created_seconds = 0;
  std::string model;                               // canonical name of the model that served
  std::string system_fingerprint;                  // build and model digest; empty means null
  bool shows_logprobs = true;                      // whether returned tokens have them
  bool shows_ids = false;                          // ids of the answer's and the prompt's tokens
  bool tokens_as_ids = false;                      // log-probabilities name tokens by id
  std::vector<std::string> fields{};               // native: the fields to send; empty means all
  bool is_list = false;                            // native: the choices are an array
  std::shared_ptr<const json> settings{};          // native: see native_settings; null if not sent
  std::uint32_t context_tokens_max = 0;            // native: tells whether the context cut an answer
  std::uint32_t prompt_tokens = 0;                 // over all prompts, if known when the answer begins
  bool echoes = false;                             // choices begin with their prompts
  std::uint32_t top_logprobs = 0xffffffffU;        // how many of the computed alternatives to show
  std::optional<std::uint32_t> prompt_logprobs{};  // alternatives in vLLM's field; absent: no field
};

/// Another API's way of writing answers, with the parts of the request that its answers repeat.
struct answer_shape {
  answer_shape() = default;
  virtual ~answer_shape() = default;
  answer_shape(const answer_shape&) = delete;
  answer_shape& operator=(const answer_shape&) = delete;
  [[nodiscard]] virtual std::unique_ptr<answer_writer> make_writer(const response_head& head) const = 0;
};

}  // namespace redline::api
