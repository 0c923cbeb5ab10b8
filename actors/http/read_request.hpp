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
#include "runtime/tools/reasoning_splitter.hpp"

/// From a request's body to all that its answers need: parsing, templates, tokens, grammars and their limits. May run
/// on any thread, and takes the longer the more the client sent.
namespace redline::actors {

/// Who asks, when, and in which headers: what a request says beside its body.
struct request_circumstances {
  tenant_id tenant;
  std::int64_t unix_seconds = 0;
  std::string last_event_id;
  std::string session_key;  // see api::generation_request
};

/// How an answer is to be made, but for its prompt and its session.
struct expected_answer {
  api::generation_request asked;
  std::shared_ptr<const served_model> model;
  answer_terms spec;
  std::optional<api::event_id> had;  // by a client that resumes a stream
};

/// What a prompt's answers read, with the turns that may leave their window.
struct prompt_to_answer {
  std::vector<token> tokens;
  std::optional<std::vector<token_range>> turns;
  tools::reasoning_splitter thoughts{};       // of an answer to it
  std::string echo{};                         // what the answer's text begins with
  std::shared_ptr<const std::string> text{};  // in llama.cpp's shape, which repeats it; null: it is not repeated
  api::prompt_report report{};                // when log-probabilities of it were asked for
};

/// Prompts that nothing is computed of.
struct asked_prompts {
  std::shared_ptr<const served_model> model;
  std::vector<prompt_to_answer> prompts;
  std::string cache_salt;
};

struct ready_request {
  expected_answer what;  // without what was made prompts, tokens and rules of
  std::vector<prompt_to_answer> prompts;
  std::shared_ptr<const output_rules> rules;
  std::uint64_t bytes = 0;  // that it holds while it is answered
};

/// Whether answers say the tokens of their prompts: in llama.cpp's shape they have no place for them.
bool repeats_prompt_ids(const api::generation_request& asked);
/// A model's names for clients come with ways to sample, which a request's own fields override.
api::request_limits limits_for(const gateway_services& services);
/// The prompts alone, for who asks what the model would read.
api::checked<asked_prompts> read_prompts(const gateway_services& services, api::generation_request request,
                                         std::int64_t now);
api::checked<expected_answer> read_expected(const gateway_services& services, std::shared_ptr<const served_model> model,
                                            api::generation_request request, const request_circumstances& when);
/// All that a request for answers needs.
api::checked<ready_request> read_request(const gateway_services& services, const std::string& body,
                                         api::request_parser parse, request_circumstances when);

}  // namespace redline::actors
