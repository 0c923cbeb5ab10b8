#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/fields/json.hpp"
#include "actors/http/request/generation_request.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/tools/tool_set.hpp"

namespace redline::api {

checked<generation_request> parse_chat_request(std::string_view body, const request_limits& limits = {});
checked<generation_request> parse_completion_request(std::string_view body, const request_limits& limits = {});
/// llama.cpp serves its own shape under the same path; n_predict identifies it.
checked<generation_request> parse_completion_or_native_request(std::string_view body,
                                                               const request_limits& limits = {});
/// Mistral's /v1/fim/completions.
checked<generation_request> parse_fim_request(std::string_view body, const request_limits& limits = {});
/// llama.cpp's /completion and /infill.
checked<generation_request> parse_native_request(std::string_view body, const request_limits& limits = {});
checked<generation_request> parse_infill_request(std::string_view body, const request_limits& limits = {});
/// body: an object. has_prompt: false if the model's input comes from elsewhere; `messages` or `prompts` then stay
/// empty.
checked<generation_request> read_generation(const json& body, endpoint from, bool has_prompt,
                                            const request_limits& limits = {});

/// llama.cpp sends {content, add_special, parse_special, with_pieces}, vLLM {model, prompt | messages,
/// add_special_tokens}.
struct tokenize_request {
  std::string model;
  std::optional<std::string> text;  // if absent, messages are used
  json messages = json::array();
  std::optional<tools::tool_set> tools;
  json template_variables = json::object();
  bool add_special = false;
  bool parse_special = true;          // as in the prompts of completions
  bool add_generation_prompt = true;  // messages only
  bool continues_last = false;        // see generation_request
  bool with_pieces = false;
  bool is_vllm_shape = false;
};
checked<tokenize_request> parse_tokenize_request(std::string_view body, const request_limits& limits = {});

struct detokenize_request {
  std::string model;
  std::vector<token> tokens;
};
checked<detokenize_request> parse_detokenize_request(std::string_view body, const request_limits& limits = {});

struct template_request {
  std::string model;
  json messages = json::array();
  std::optional<tools::tool_set> tools;
  json template_variables = json::object();
  bool add_generation_prompt = true;
  bool continues_last = false;  // see generation_request
};
checked<template_request> parse_template_request(std::string_view body, const request_limits& limits = {});

}  // namespace redline::api
