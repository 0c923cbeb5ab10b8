#include "actors/cli/edit_task.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "actors/cli/local_runner.hpp"
#include "actors/cli/server_address.hpp"
#include "actors/editing/prompt_builder.hpp"
#include "transport/http_client.hpp"

namespace redline::actors::cli {
namespace {

constexpr std::size_t file_bytes_max = 4 << 20;
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
  if (method.method == "copy") {
    if (got.reason != finish_reason::stop) {
      return failure{errc::unusable_answer, "the model's program did not end within the context"};
    }
    out.after = out.answer;
    return out;
  }
  REDLINE_TRY_ASSIGN(out.after, file_of_answer(task, out.answer));
  return out;
}

}  // namespace

result<generation_spec> request_of(const edit_task& task, const draft::draft_options& how, const engine& e,
                                   const std::optional<copy_options>& copy) {
  REDLINE_TRY_ASSIGN(const auto prompts, prompt_builder::make(e.tokenizer()));
  const std::string message = copy ? program_message_of(task, wording_of(*copy)) : message_of(task);
  generation_spec g;
  REDLINE_TRY_ASSIGN(g.prompt, prompts.message_with_file(message, real_environment().unix_seconds()));
  g.tokens_max = e.context_max();
  g.draft = how;
  if (copy) {
    if (!e.token_trie()) return failure{errc::unsupported_format, "the model's vocabulary cannot spell programs"};
    REDLINE_TRY_ASSIGN(g.rules, make_copy_rules(e.token_trie(), {task.before}, *copy));
  }
  if (draft::reads_prediction(how.how)) g.prediction = e.tokenizer()->encode(task.before);
  return g;
}

result<edit_outcome> edit_on_server(const std::string& url, const std::string& api_key, const edit_task& task,
                                    const method_flags& method,
                                    const std::function<void(const std::string&)>& on_text) {
  using json = nlohmann::ordered_json;
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
  if (predicts_old_file(method.method)) body["prediction"] = {{"type", "content"}, {"content", task.before}};
  if (copies) {
    body["redline"]["copy"] = {{"trust", method.copy_trust},
                               {"spans", method.copy_spans},
                               {"anchors", method.copy_anchors},
                               {"confidence_min", method.copy_confidence_min}};
    body["redline"]["files"] = {task.before};
  }
  std::string text;
  try {
    text = body.dump();
  } catch (const json::exception&) {
    return failure{errc::invalid_argument,
                   task.path + " is not UTF-8, which a server's JSON cannot carry; edit it without --server"};
  }

  edit_outcome out;
  out.method = method.method;
  std::optional<failure> broken;
  bool done = false;
  bool ended = false;  // by the model, not by a limit
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
    if (chunk.contains("error")) {
      broken = failure{errc::internal, "the server says: " + chunk["error"].value("message", std::string("an error"))};
      return false;
    }
    if (chunk.contains("choices") && !chunk["choices"].empty()) {
      const auto& delta = chunk["choices"][0]["delta"];
      if (delta.contains("content") && delta["content"].is_string()) {
        out.answer += delta["content"].get<std::string>();
        on_text(out.answer);
      }
      ended = ended || chunk["choices"][0].value("finish_reason", json()) == "stop";
      if (chunk["choices"][0].contains("redline"))
        out.program = chunk["choices"][0]["redline"].value("program", std::string());
    }
    if (chunk.contains("usage") && chunk["usage"].is_object()) {
      const auto& usage = chunk["usage"];
      out.completion_tokens = usage.value("completion_tokens", 0u);
      const json ours = usage.value("redline", json::object());
      out.target_passes = ours.value("target_passes", 0u);
      out.draft_passes = ours.value("draft_passes", 0u);
      out.drafted = ours.value("drafted", 0u);
      out.accepted = ours.value("accepted", 0u);
      out.copied_forced = ours.value("copied_forced", 0u);
      out.copied_verified = ours.value("copied_verified", 0u);
    }
    return true;
  });
  if (!answer) return answer.error();
  if (broken) return *broken;
  if (answer->status != 200) {
    const json error = json::parse(answer->body, nullptr, false);
    std::string why = "HTTP status " + std::to_string(answer->status);
    if (error.is_object() && error.contains("error") && error["error"].is_object()) {
      const std::string message = error["error"].value("message", std::string());
      if (error["error"].value("code", json()) == "context_length_exceeded") {
        return failure{errc::context_length_exceeded, message};
      }
      why += ": " + message;
    }
    return failure{errc::internal, "the server refused: " + why};
  }
  if (!done) return failure{errc::io_error, "the server's answer broke off"};
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (copies) {
    if (!ended) return failure{errc::unusable_answer, "the model's program did not end within the context"};
    out.after = out.answer;
    return out;
  }
  REDLINE_TRY_ASSIGN(out.after, file_of_answer(task, out.answer));
  return out;
}

result<edit_outcome> edit_locally(engine_options options, const edit_task& task, const method_flags& method,
                                  const std::function<void(const std::string&)>& on_text) {
  if (task.before.size() > file_bytes_max) return failure{errc::invalid_argument, task.path + " is too large to edit"};
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
