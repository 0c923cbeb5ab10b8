#include "actors/cli/edit_task.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "actors/cli/json_members.hpp"
#include "actors/serving/constrained_output.hpp"

namespace redline::actors::cli {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t calls_at_once_max = 16;  // at a shared server; each uses its own connection

/// Most of the new file repeats the old one.
bool predicts_old_file(std::string_view method) {
  return method == name_of(draft::method::prediction) || method == name_of(draft::method::automatic);
}

program_wording wording_of(const copy_options& o) { return {o.line_spans, o.token_spans, o.anchors}; }

/// The draft options in a request's form.
json speculation_of(const method_flags& method, bool is_known) {
  json out = {{"method", method.method == "copy" ? "lookup" : method.method}};
  if (is_known) return out;
  out["max_matching_ngram_size"] = method.options.max_matching_ngram_size;
  out["confidence_min"] = method.options.confidence_min;
  out["micro_draft_tokens"] = method.options.micro_draft_tokens;
  out["max_num_run"] = method.options.max_num_run;
  return out;
}

json request_of(const edit_task& task, const method_flags& method, bool knows_drafting) {
  const bool copies = method.method == "copy";
  const std::string message = copies ? program_message_of(task, wording_of(to_copy_options(method))) : message_of(task);
  json body = {{"messages", {{{"role", "user"}, {"content", message}}}},
               {"temperature", 0},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}},
               {"redline", {{"speculation", speculation_of(method, knows_drafting)}}}};
  if (predicts_old_file(method.method)) body["prediction"] = {{"type", "content"}, {"content", shown_file(task)}};
  if (copies) {
    body["redline"]["copy"] = {{"trust", method.copy_trust},
                               {"spans", method.copy_spans},
                               {"anchors", method.copy_anchors},
                               {"confidence_min", method.copy_confidence_min},
                               {"probability_min", method.copy_probability_min}};
    body["redline"]["files"] = {shown_file(task)};
  }
  return body;
}

void take_usage(const json& usage, edit_outcome& out) {
  const json& ours = member(usage, "redline");
  out.completion_tokens = count_of(member(usage, "completion_tokens"));
  out.target_passes = count_of(member(ours, "target_passes"));
  out.draft_passes = count_of(member(ours, "draft_passes"));
  out.drafted = count_of(member(ours, "drafted"));
  out.accepted = count_of(member(ours, "accepted"));
  out.copied_forced = count_of(member(ours, "copied_forced"));
  out.copied_verified = count_of(member(ours, "copied_verified"));
}

struct edit_reply {
  edit_outcome outcome;  // without the new file
  bool is_program = false;
  bool ended = false;  // whether the model ended it
};

std::uint32_t count_refused(const json& spans) {
  if (!spans.is_array()) return 0;
  return static_cast<std::uint32_t>(
      std::ranges::count_if(spans, [](const json& span) { return member(span, "refused") == true; }));
}

result<edit_reply> ask_for_edit(const model_door& door, const edit_task& task, const method_flags& method,
                                const std::function<void(const std::string&)>& on_text) {
  edit_reply reply{.outcome = {}, .is_program = method.method == "copy"};
  edit_outcome& out = reply.outcome;
  out.method = method.method;
  const auto began = std::chrono::steady_clock::now();
  const auto take = [&](const json& chunk) {
    if (const json& choices = member(chunk, "choices"); choices.is_array() && !choices.empty()) {
      const json& choice = choices[0];
      if (const std::string piece = text_of(member(choice, "delta", "content")); !piece.empty()) {
        out.answer += piece;
        on_text(out.answer);
      }
      if (const std::string finish = text_of(member(choice, "finish_reason")); !finish.empty())
        reply.ended = is_models_own_end(finish);
      if (const json& program = member(choice, "redline"); program.is_object()) {
        out.program = text_of(member(program, "program"));
        out.refused_spans = count_refused(member(program, "spans"));
      }
    }
    if (const json& usage = member(chunk, "usage"); usage.is_object()) take_usage(usage, out);
  };
  // Invalid UTF-8 in an instruction becomes U+FFFD.
  REDLINE_TRY(door.ask("/v1/chat/completions", request_of(task, method, door.knows_drafting()), take));
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return reply;
}

/// The whole file, after a program that the model refused in part; the counts are those of both.
result<edit_reply> ask_for_whole_file(const model_door& door, const edit_task& task, method_flags method,
                                      const edit_outcome& program,
                                      const std::function<void(const std::string&)>& on_text) {
  method.method = "auto";
  REDLINE_TRY_ASSIGN(auto reply, ask_for_edit(door, task, method, on_text));
  edit_outcome& out = reply.outcome;
  out.method = program.method;
  out.program = program.program;
  out.refused_spans = program.refused_spans;
  out.seconds += program.seconds;
  for (const auto count : {&edit_outcome::completion_tokens, &edit_outcome::target_passes, &edit_outcome::draft_passes,
                           &edit_outcome::drafted, &edit_outcome::accepted, &edit_outcome::copied_forced,
                           &edit_outcome::copied_verified}) {
    out.*count += program.*count;
  }
  return reply;
}

}  // namespace

result<edit_outcome> edit_file(const model_door& door, const edit_task& task, const method_flags& method,
                               const std::function<void(const std::string&)>& on_text) {
  REDLINE_TRY(check_editable(task));
  auto reply = ask_for_edit(door, task, method, on_text);
  if (reply && reply->outcome.refused_spans > 0)
    reply = ask_for_whole_file(door, task, method, reply->outcome, on_text);
  if (!reply) return reply.error();
  edit_outcome out = std::move(reply->outcome);
  const edit_answer answer{.text = out.answer, .is_whole = reply->ended, .is_program = reply->is_program};
  REDLINE_TRY_ASSIGN(out.after, file_of_answer(task, answer));
  return out;
}

std::vector<result<edit_outcome>> edit_each(const model_door& door, const std::vector<edit_task>& tasks,
                                            const method_flags& method,
                                            const std::function<void(std::size_t bytes)>& on_bytes) {
  std::vector<result<edit_outcome>> out(tasks.size(), failure{errc::internal, "no answer"});
  std::vector<std::size_t> bytes(tasks.size());
  std::mutex mutex;
  std::size_t next = 0;
  std::size_t all_bytes = 0;
  const auto work = [&] {
    for (;;) {
      std::unique_lock lock(mutex);
      if (next == tasks.size()) return;
      const std::size_t i = next++;
      lock.unlock();
      auto got = edit_file(door, tasks[i], method, [&](const std::string& answer) {
        const std::scoped_lock telling(mutex);
        all_bytes += answer.size() - std::exchange(bytes[i], answer.size());
        on_bytes(all_bytes);
      });
      lock.lock();
      out[i] = std::move(got);
    }
  };
  std::vector<std::jthread> callers;
  const std::size_t most = door.knows_drafting() ? edits_at_once_max : calls_at_once_max;
  for (std::size_t i = 0; i < std::min(tasks.size(), most); ++i) callers.emplace_back(work);
  callers.clear();  // waits for the threads
  return out;
}

}  // namespace redline::actors::cli
