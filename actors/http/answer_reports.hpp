#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "actors/http/request/answer_writer.hpp"
#include "actors/http/request/generation_request.hpp"
#include "actors/messages/session_messages.hpp"
#include "actors/pool/served_model.hpp"

/// Converts the reports of sessions to the API's types.
namespace redline::actors {

api::usage_report to_usage(const session_stats& s);
/// nullopt if the answer is not a program.
std::optional<api::program_report> to_program(const copy_report& copied);
api::trace_report to_public(const step_trace& t);
/// The tokens of the text with their bytes, and with their log-probabilities where `m` has them.
std::vector<api::token_report> report_tokens(const served_model& model, const session_text& m);
/// A lower bound on the bytes of JSON, numbers excluded, that the tokens add to an answer that shows them.
std::uint64_t report_bytes_min(const api::generation_request& asked, std::span<const api::token_report> reports);

}  // namespace redline::actors
