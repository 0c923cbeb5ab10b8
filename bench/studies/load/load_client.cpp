#include "bench/studies/load/load_client.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/studies/common/edit_corpus.hpp"
#include "runtime/base/hash.hpp"
#include "runtime/base/hex.hpp"

namespace redline::studies {
namespace {

using json = nlohmann::json;
using clock = std::chrono::steady_clock;

// With more requests the client itself would be measured.
constexpr std::size_t in_flight_max = 1024;

double milliseconds_since(clock::time_point then) {
  return std::chrono::duration<double, std::milli>(clock::now() - then).count();
}

double unix_now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::uint64_t count_in(const json& object, const char* field) {
  const auto it = object.find(field);
  return it != object.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
}

token_count counts_in(const json& object) { return {count_in(object, "drafted"), count_in(object, "accepted")}; }

/// Other servers leave out Redline's fields, which then stay 0.
void read_usage(const json& usage, load_row& row) {
  row.tokens = count_in(usage, "completion_tokens");
  const auto ours = usage.find("redline");
  if (ours == usage.end() || !ours->is_object()) return;
  row.target_passes = count_in(*ours, "target_passes");
  row.drafts = counts_in(*ours);
  const auto sources = ours->find("sources");
  if (sources == ours->end() || !sources->is_object()) return;
  for (const auto& [name, one] : sources->items()) {
    if (one.is_object()) row.sources[name] = counts_in(one);
  }
}

/// The text of a chunk of a chat or a completion.
std::string text_in(const json& chunk) {
  const auto choices = chunk.find("choices");
  if (choices == chunk.end() || !choices->is_array() || choices->empty() || !(*choices)[0].is_object()) return {};
  const json& choice = (*choices)[0];
  const auto delta = choice.find("delta");
  const json& holder = delta != choice.end() && delta->is_object() ? *delta : choice;
  const auto text = holder.find(&holder == &choice ? "text" : "content");
  return text != holder.end() && text->is_string() ? text->get<std::string>() : std::string();
}

/// The "message" of {"error": {"message": "..."}}.
std::string message_in(const json& answer) {
  const auto error = answer.is_object() ? answer.find("error") : answer.end();
  if (!answer.is_object() || error == answer.end() || !error->is_object()) return {};
  const auto message = error->find("message");
  return message != error->end() && message->is_string() ? message->get<std::string>() : std::string("an error");
}

void run_clients(std::size_t clients, std::size_t count, const std::function<void(std::size_t)>& one) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::min(clients, count); ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < count; at = next++) one(at);
    });
  }
  for (auto& t : threads) t.join();
}

}  // namespace

load_row ask(const server_address& server, const http_question& question) {
  load_row row;
  std::string text;
  bool done = false;
  auto where = server.url;
  where.target += question.path;
  row.sent = unix_now();
  const auto began = clock::now();
  const auto answer =
      transport::http_post_stream(where, server.headers, question.body, [&](const transport::sse_event& e) {
        if (e.data == "[DONE]") {
          done = true;
          return true;
        }
        const json chunk = json::parse(e.data, nullptr, false);
        if (!chunk.is_object()) {
          row.error = "an event that is no JSON object";
          return false;
        }
        if (const auto problem = message_in(chunk); !problem.empty()) {
          row.error = problem;
          return false;
        }
        const std::string more = text_in(chunk);
        if (!more.empty() && text.empty()) row.first_ms = milliseconds_since(began);
        text += more;
        if (const auto usage = chunk.find("usage"); usage != chunk.end() && usage->is_object()) read_usage(*usage, row);
        return true;
      });
  row.total_ms = milliseconds_since(began);
  if (text.empty()) row.first_ms = row.total_ms;
  row.characters = characters_of(text);
  row.answer = to_hex(fnv1a().add(text).value());
  if (!answer) {
    row.error = answer.error().context;
    row.error_kind = text.empty() ? "no connection" : "broken off";
  } else if (answer->status != 200) {
    row.error = "HTTP " + std::to_string(answer->status) + ": " + message_in(json::parse(answer->body, nullptr, false));
    row.error_kind = "http " + std::to_string(answer->status);
  } else if (!row.error.empty()) {
    row.error_kind = "error in the stream";
  } else if (!done) {
    row.error = "the answer broke off";
    row.error_kind = "broken off";
  }
  row.text = std::move(text);
  return row;
}

namespace {

/// The requests of one session, or a single request: indexes into the plan, in order.
std::vector<std::vector<std::size_t>> chains_of(const std::vector<planned_request>& plan) {
  std::vector<std::vector<std::size_t>> chains;
  std::map<std::string, std::size_t> sessions;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const auto [at, is_new] = plan[i].session.empty() ? std::pair(sessions.end(), true)
                                                      : sessions.try_emplace(plan[i].session, chains.size());
    if (is_new) {
      chains.push_back({i});
    } else {
      chains[at->second].push_back(i);
    }
  }
  return chains;
}

}  // namespace

load_record run_level(const load_level& level, const std::string& method, const std::vector<planned_request>& plan,
                      const asker& ask_one, std::atomic<std::size_t>& done_count) {
  load_record record;
  record.rows.resize(plan.size());
  const double began = unix_now();
  const auto started = clock::now();
  std::atomic<std::size_t> in_flight{0};
  const auto after = [](clock::time_point then, double seconds) {
    return then + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
  };
  // `due` is when the request should have been sent. Waiting for a free thread delays the user too, so it counts.
  const auto one = [&](std::size_t i, clock::time_point due, const std::vector<past_turn>& before) -> const load_row& {
    const double late_ms = level.is_rate ? std::max(0.0, milliseconds_since(due)) : 0;
    load_row row;
    if (in_flight++ >= in_flight_max) {
      row.error = "more than " + std::to_string(in_flight_max) + " requests were open";
      row.error_kind = "not sent";
    } else {
      row = ask_one(i, before);
    }
    --in_flight;
    row.sent -= late_ms / 1e3;
    row.first_ms += late_ms;
    row.total_ms += late_ms;
    row.level = level.name();
    row.method = method;
    row.item = plan[i].item;
    row.tenant = plan[i].tenant;
    ++done_count;
    return record.rows[i] = std::move(row);
  };
  const auto run_chain = [&](const std::vector<std::size_t>& chain) {
    std::vector<past_turn> before;
    bool has_failed = false;
    auto answered = started;
    for (const std::size_t i : chain) {
      auto due = after(answered, plan[i].think);
      if (level.is_rate) due = std::max(due, after(started, plan[i].due));
      if (has_failed) {
        record.rows[i] = {.level = level.name(),
                          .method = method,
                          .item = plan[i].item,
                          .sent = unix_now(),
                          .error = "the request before it in its session failed",
                          .error_kind = "not sent",
                          .tenant = plan[i].tenant};
        ++done_count;
        continue;
      }
      if (due > clock::now()) std::this_thread::sleep_until(due);
      const load_row& row = one(i, due, before);
      answered = clock::now();
      has_failed = !row.error.empty();
      if (plan[i].is_edit) before.push_back({plan[i].edit, row.text});
    }
  };
  const auto chains = chains_of(plan);
  if (level.is_rate) {
    std::vector<std::thread> threads;
    for (const auto& chain : chains) {
      std::this_thread::sleep_until(after(started, plan[chain.front()].due));
      threads.emplace_back(run_chain, chain);
    }
    for (auto& t : threads) t.join();
  } else {
    run_clients(static_cast<std::size_t>(level.amount), chains.size(), [&](std::size_t i) { run_chain(chains[i]); });
  }
  record.windows.push_back({level.name(), method, began, unix_now()});
  return record;
}

}  // namespace redline::studies
