#include "actors/cli/edit_task.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "actors/cli/json_members.hpp"
#include "actors/cli/local_runner.hpp"
#include "actors/cli/server_address.hpp"
#include "actors/prompts/prompt_builder.hpp"
#include "runtime/json/strict_json.hpp"
#include "transport/http_client.hpp"

namespace redline::actors::cli {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t edits_at_once_max = 64;  // of this process; later ones wait for a place
constexpr std::size_t calls_at_once_max = 16;  // of a server, each on a connection of its own

/// Most of the new file is the old one.
bool predicts_old_file(std::string_view method) {
  return method == name_of(draft::method::prediction) || method == name_of(draft::method::automatic);
}

program_wording wording_of(const copy_options& o) { return {o.line_spans, o.token_spans, o.anchors}; }

result<edit_outcome> outcome_of(const edit_task& task, const method_flags& method, const outcome& got) {
  edit_outcome out;
  out.answer = got.text;
  out.completion_tokens = got.stats.completion_tokens;
  out.target_passes = got.stats.target_passes;
  out.draft_passes = got.stats.draft_passes;
  out.drafted = got.stats.drafted;
  out.accepted = got.stats.accepted;
  out.seconds = static_cast<double>(got.stats.total_us) / 1e6;
  out.copied_forced = got.stats.copied_forced;
  out.copied_verified = got.stats.copied_verified;
  out.program = got.copied.program;
  out.method = method.method;
  const edit_answer answer{
      .text = out.answer, .is_whole = got.reason == finish_reason::stop, .is_program = method.method == "copy"};
  REDLINE_TRY_ASSIGN(out.after, file_of_answer(task, answer));
  return out;
}

}  // namespace

result<generation_spec> request_of(const edit_task& task, const draft::draft_options& how, const engine& e,
                                   const std::optional<copy_options>& copy) {
  REDLINE_TRY(check_editable(task));
  REDLINE_TRY_ASSIGN(const auto prompts, prompt_builder::make(e.tokenizer(), e.options().chat_template));
  const std::string message = copy ? program_message_of(task, wording_of(*copy)) : message_of(task);
  generation_spec g;
  REDLINE_TRY_ASSIGN(g.prompt, prompts.message_with_file(message, real_environment().unix_seconds()));
  g.tokens_max = e.context_max();
  g.draft = how;
  if (copy) {
    if (!e.token_trie()) return failure{errc::unsupported_format, "the model's vocabulary cannot spell programs"};
    REDLINE_TRY_ASSIGN(g.rules, make_copy_rules(e.token_trie(), {shown_file(task)}, *copy));
  }
  if (draft::reads_prediction(how.how)) g.prediction = e.tokenizer()->encode(shown_file(task));
  return g;
}

result<edit_outcome> edit_on_server(const std::string& url, const std::string& api_key, const edit_task& task,
                                    const method_flags& method,
                                    const std::function<void(const std::string&)>& on_text) {
  REDLINE_TRY(check_editable(task));
  REDLINE_TRY_ASSIGN(auto server, server_address::parse(url, api_key));
  auto& [where, headers] = server;
  where.target += "/v1/chat/completions";
  const bool copies = method.method == "copy";
  json speculation = json::object();
  speculation["method"] = copies ? "lookup" : method.method;
  speculation["max_matching_ngram_size"] = method.options.max_matching_ngram_size;
  speculation["confidence_min"] = method.options.confidence_min;
  speculation["micro_draft_tokens"] = method.options.micro_draft_tokens;
  speculation["max_num_run"] = method.options.max_num_run;
  const std::string message = copies ? program_message_of(task, wording_of(to_copy_options(method))) : message_of(task);
  json body = {{"messages", {{{"role", "user"}, {"content", message}}}},
               {"temperature", 0},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}},
               {"redline", {{"speculation", speculation}}}};
  if (predicts_old_file(method.method)) body["prediction"] = {{"type", "content"}, {"content", shown_file(task)}};
  if (copies) {
    body["redline"]["copy"] = {{"trust", method.copy_trust},
                               {"spans", method.copy_spans},
                               {"anchors", method.copy_anchors},
                               {"confidence_min", method.copy_confidence_min}};
    body["redline"]["files"] = {shown_file(task)};
  }
  const std::string text = dump_json(body);  // an instruction that is not UTF-8 is shown as U+FFFD

  edit_outcome out;
  out.method = method.method;
  std::optional<failure> broken;
  bool done = false;
  bool ended = false;  // by the model
  const auto began = std::chrono::steady_clock::now();
  const auto answer = transport::http_post_stream(where, headers, text, [&](const transport::sse_event& event) {
    if (event.data == "[DONE]") {
      done = true;
      return true;
    }
    const json chunk = json::parse(event.data, nullptr, false);
    if (chunk.is_discarded() || !chunk.is_object()) {
      broken = failure{errc::malformed_message, "the server sent an event that is no JSON object"};
      return false;
    }
    if (!member(chunk, "error").is_null()) {
      broken = failure{errc::internal, "the server says: " + text_of(member(chunk, "error", "message"))};
      return false;
    }
    if (const json& choices = member(chunk, "choices"); choices.is_array() && !choices.empty()) {
      const json& choice = choices[0];
      if (const std::string piece = text_of(member(choice, "delta", "content")); !piece.empty()) {
        out.answer += piece;
        on_text(out.answer);
      }
      if (const std::string finish = text_of(member(choice, "finish_reason")); !finish.empty())
        ended = is_models_own_end(finish);
      if (member(choice, "redline").is_object()) out.program = text_of(member(choice, "redline", "program"));
    }
    if (const json& usage = member(chunk, "usage"); usage.is_object()) {
      const json& ours = member(usage, "redline");
      out.completion_tokens = count_of(member(usage, "completion_tokens"));
      out.target_passes = count_of(member(ours, "target_passes"));
      out.draft_passes = count_of(member(ours, "draft_passes"));
      out.drafted = count_of(member(ours, "drafted"));
      out.accepted = count_of(member(ours, "accepted"));
      out.copied_forced = count_of(member(ours, "copied_forced"));
      out.copied_verified = count_of(member(ours, "copied_verified"));
    }
    return true;
  });
  if (!answer) return answer.error();
  if (broken) return *broken;
  if (answer->status != 200) {
    const json error = json::parse(answer->body, nullptr, false);
    std::string why = "HTTP status " + std::to_string(answer->status);
    if (const json& told = member(error, "error", "message"); told.is_string()) {
      if (text_of(member(error, "error", "code")) == "context_length_exceeded")
        return failure{errc::context_length_exceeded, text_of(told)};
      why += ": " + text_of(told);
    }
    return failure{errc::internal, "the server refused: " + why};
  }
  if (!done) return failure{errc::io_error, "the server's answer broke off"};
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  REDLINE_TRY_ASSIGN(out.after, file_of_answer(task, {.text = out.answer, .is_whole = ended, .is_program = copies}));
  return out;
}

result<edit_outcome> edit_locally(engine_options options, const edit_task& task, const method_flags& method,
                                  const std::function<void(const std::string&)>& on_text) {
  REDLINE_TRY_ASSIGN(const auto how, to_draft_options(method, !options.draft_path.empty()));
  std::string answer;
  std::optional<copy_options> copy;
  if (method.method == "copy") copy = to_copy_options(method);
  const auto make_request = [&](const engine& e) { return request_of(task, how, e, copy); };
  REDLINE_TRY_ASSIGN(const auto got,
                     generate_locally(std::move(options), how, make_request, [&](const session_text& m) {
                       answer += m.text;
                       on_text(answer);
                     }));
  return outcome_of(task, method, got);
}

result<std::vector<result<edit_outcome>>> edit_each_locally(engine_options options, const std::vector<edit_task>& tasks,
                                                            const method_flags& method,
                                                            const std::function<void(std::size_t bytes)>& on_bytes) {
  REDLINE_TRY_ASSIGN(const auto how, to_draft_options(method, !options.draft_path.empty()));
  std::optional<copy_options> copy;
  if (method.method == "copy") copy = to_copy_options(method);
  const auto users = static_cast<std::uint32_t>(std::clamp<std::size_t>(tasks.size(), 1, edits_at_once_max));
  REDLINE_TRY_ASSIGN(const auto runner, local_runner::create(std::move(options), users));
  std::vector<result<edit_outcome>> out;
  std::vector<generation_spec> requests;
  std::vector<std::size_t> places;  // of each request among the tasks
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    auto request = request_of(tasks[i], how, runner->parts(), copy);
    out.emplace_back(request ? failure{errc::internal, "no answer"} : request.error());
    if (!request) continue;
    requests.push_back(std::move(*request));
    places.push_back(i);
  }
  std::size_t bytes = 0;
  REDLINE_TRY_ASSIGN(const auto all,
                     runner->run_each(std::move(requests), how, [&](std::size_t, const session_text& m) {
                       bytes += m.text.size();
                       on_bytes(bytes);
                     }));
  for (std::size_t i = 0; i < all.size(); ++i) {
    out[places[i]] = all[i] ? outcome_of(tasks[places[i]], method, *all[i]) : result<edit_outcome>(all[i].error());
  }
  return out;
}

std::vector<result<edit_outcome>> edit_each_on_server(const std::string& url, const std::string& api_key,
                                                      const std::vector<edit_task>& tasks, const method_flags& method,
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
      auto got = edit_on_server(url, api_key, tasks[i], method, [&](const std::string& answer) {
        const std::scoped_lock telling(mutex);
        all_bytes += answer.size() - std::exchange(bytes[i], answer.size());
        on_bytes(all_bytes);
      });
      lock.lock();
      out[i] = std::move(got);
    }
  };
  std::vector<std::jthread> callers;
  for (std::size_t i = 0; i < std::min(tasks.size(), calls_at_once_max); ++i) callers.emplace_back(work);
  callers.clear();  // waits for them
  return out;
}

}  // namespace redline::actors::cli
