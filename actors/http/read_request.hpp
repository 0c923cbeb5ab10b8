#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/http/gateway_services.hpp"
#include "actors/http/request/answer_writer.hpp"
#include "actors/http/request/event_id.hpp"
#include "actors/http/request/generation_request.hpp"
#include "actors/serving/session.hpp"
#include "runtime/formats/recognise.hpp"
#include "runtime/tools/reasoning_splitter.hpp"

/// Turns a request's body into all that its answers need: parsing, templates, tokens, grammars and their limits. May
/// run on any thread. The time grows with what the client sent.
namespace redline::actors {

/// What a request says outside its body: its tenant, its time and its headers.
struct request_circumstances {
  tenant_id tenant;
  std::int64_t unix_seconds = 0;
  std::string last_event_id;
  std::string session_key;  // see api::generation_request
};

/// How to make an answer, without its prompt and its session.
struct expected_answer {
  api::generation_request asked;
  std::shared_ptr<const served_model> model;
  answer_terms spec;
  std::optional<api::event_id> resume_from;  // position of a client that resumes a stream
};

/// What the answers to one prompt read, with the turns that may leave their window.
struct prompt_to_answer {
  std::vector<token> tokens;
  std::optional<std::vector<token_range>> turns;
  tools::reasoning_splitter thoughts{};                 // the state in which an answer begins
  std::string echo{};                                   // prefix of the answer's text
  std::shared_ptr<const std::string> text{};            // for llama.cpp's shape, which repeats it; else null
  api::prompt_report report{};                          // if its log-probabilities were requested
  std::optional<formats::expectation> expected{};  // until it becomes the answer's prediction
};

/// Prompts for which nothing is computed.
struct asked_prompts {
  std::shared_ptr<const served_model> model;
  std::vector<prompt_to_answer> prompts;
  std::string cache_salt;
};

struct parsed_request {
  expected_answer what;  // without what became prompts, tokens and rules
  std::vector<prompt_to_answer> prompts;
  std::shared_ptr<const output_rules> rules;
  std::uint64_t bytes = 0;  // reserved while it is answered
};

/// True if answers contain the tokens of their prompts. llama.cpp's shape has no field for them.
bool repeats_prompt_ids(const api::generation_request& asked);
/// The limits, with the sampling defaults of each model name. A request's own fields override those.
api::request_limits limits_for(const gateway_services& services);
/// Only the prompts, for a caller that asks what the model would read.
api::checked<asked_prompts> read_prompts(const gateway_services& services, api::generation_request request,
                                         std::int64_t now);
api::checked<expected_answer> read_expected(const gateway_services& services, std::shared_ptr<const served_model> model,
                                            api::generation_request request, const request_circumstances& when);
/// Reads all that a request for answers needs.
api::checked<parsed_request> read_request(const gateway_services& services, const std::string& body,
                                          api::request_parser parse, request_circumstances when);

}  // namespace redline::actors
