#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "actors/http/request/answer_writer.hpp"
#include "actors/http/request/generation_request.hpp"
#include "actors/messages/session_messages.hpp"
#include "actors/pool/served_model.hpp"

/// What sessions report, in the words of the API.
namespace redline::actors {

api::usage_report to_usage(const session_stats& s);
/// nullopt: the answer is no program.
std::optional<api::program_report> to_program(const copy_report& copied);
api::trace_report to_public(const step_trace& t);
/// The tokens of the text with their bytes, and their log-probabilities where `m` has them.
std::vector<api::token_report> report_tokens(const served_model& model, const session_text& m);
/// What the tokens add to an answer that shows them, in bytes of JSON without the numbers: no more than it will be.
std::uint64_t report_bytes_min(const api::generation_request& asked, std::span<const api::token_report> reports);

}  // namespace redline::actors
