#include "actors/http/answer_reports.hpp"

namespace redline::actors {
namespace {

std::vector<api::trace_report::run> to_public(const std::vector<traced_run>& runs) {
  std::vector<api::trace_report::run> out;
  for (const traced_run& run : runs) out.push_back({name_of(run.from), run.tokens, run.bytes});
  return out;
}

}  // namespace

api::usage_report to_usage(const session_stats& s) {
  api::usage_report u;
  u.prompt_tokens = s.prompt_tokens;
  u.completion_tokens = s.completion_tokens;
  u.drafted = s.drafted;
  u.accepted = s.accepted;
  for (const auto from : draft::all_sources) u.of(from) = {s.of(from).drafted, s.of(from).accepted};
  u.copied_forced = s.copied_forced;
  u.copied_verified = s.copied_verified;
  u.rounds = s.rounds;
  u.target_passes = s.target_passes;
  u.draft_passes = s.draft_passes;
  u.rows = s.target_rows;
  u.cached_tokens = s.cached_tokens;
  u.evicted = s.evicted_tokens;
  u.evictions = s.evictions;
  u.reevaluated = s.reevaluated;
  u.seconds = static_cast<double>(s.total_us) / 1e6;
  u.first_token_seconds = static_cast<double>(s.first_token_us) / 1e6;
  return u;
}

std::optional<api::program_report> to_program(const copy_report& copied) {
  if (copied.program.empty()) return std::nullopt;
  api::program_report out{.program = copied.program, .spans = {}};
  for (const auto& s : copied.spans) {
    out.spans.push_back({s.file, s.of == copy::unit::lines ? "lines" : "tokens", s.first, s.last,
                         s.forced ? "forced" : "verified", name_of(s.reason), s.tokens, s.refused});
  }
  return out;
}

api::trace_report to_public(const step_trace& t) {
  return {t.round, t.at_us, t.passes, t.rows, to_public(t.drafts), t.verified, t.accepted, to_public(t.came)};
}

std::vector<api::token_report> report_tokens(const served_model& model, const session_text& m) {
  const auto bytes = [&](token t) { return std::string(model.answers->tokenizer()->piece(t, true)); };
  std::vector<api::token_report> reports;
  for (std::size_t i = 0; i < m.tokens.size(); ++i) {
    api::token_report report{.chosen = {bytes(m.tokens[i]), 0, m.tokens[i]}, .top = {}, .id = m.tokens[i]};
    if (i < m.logprobs.size()) {
      report.chosen.logprob = m.logprobs[i].logprob;
      for (const auto& t : m.logprobs[i].top) report.top.push_back({bytes(t.id), t.logprob, t.id});
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

std::uint64_t report_bytes_min(const api::generation_request& asked, std::span<const api::token_report> reports) {
  constexpr std::uint64_t id_bytes = 2, chat_bytes = 34, completion_bytes = 5;
  std::uint64_t sum = asked.shows_ids() ? id_bytes * reports.size() : 0;
  if (!asked.logprobs) return sum;
  const bool is_chat = asked.from != api::endpoint::completions;
  const auto add = [&](const api::token_probability& t) {
    sum += is_chat ? chat_bytes + 3 * t.bytes.size() : completion_bytes + t.bytes.size();  // as text and as numbers
  };
  for (const auto& report : reports) {
    add(report.chosen);
    for (const auto& t : report.top) add(t);
  }
  return sum;
}

}  // namespace redline::actors
