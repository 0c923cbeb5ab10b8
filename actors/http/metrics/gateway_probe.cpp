#include "actors/http/metrics/gateway_probe.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <map>
#include <mutex>

#include "actors/http/metrics/process_status.hpp"
#include "runtime/base/version.hpp"

namespace redline::actors {
namespace {

using prometheus::Counter, prometheus::Gauge, prometheus::Histogram;

// From one millisecond to ten minutes.
const Histogram::BucketBoundaries latency_seconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                  1,     2.5,    5,     10,   30,    60,   120, 300,  600};

// From a tenth of a millisecond to ten seconds, between tokens of one answer.
const Histogram::BucketBoundaries gap_seconds{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                              0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
const Histogram::BucketBoundaries length_tokens{1,   2,    4,    8,    16,   32,    64,    128,   256,
                                                512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};

/// A reason to refuse requests. Listing them gives each a series before it occurs.
struct known_refusal {
  unsigned status;
  const char* code;
};
constexpr known_refusal known_refusals[] = {
    {400, ""},
    {400, "context_length_exceeded"},
    {400, "event_id_of_other_model"},
    {400, "event_id_of_other_request"},
    {400, "invalid_event_id"},
    {400, "invalid_grammar"},
    {400, "invalid_template"},
    {400, "not_a_stream"},
    {400, "previous_response_not_found"},
    {400, "unsupported_endpoint"},
    {400, "unsupported_parameter"},
    {401, "invalid_api_key"},
    {403, "host_not_allowed"},
    {403, "origin_not_allowed"},
    {404, ""},
    {404, "file_not_found"},
    {404, "model_not_found"},
    {404, "session_not_found"},
    {405, ""},
    {408, ""},
    {409, "answer_diverged"},
    {409, "session_version_mismatch"},
    {413, "request_too_large"},
    {413, "session_limit"},
    {415, ""},
    {417, ""},
    {422, "unusable_answer"},
    {429, "queue_full"},
    {429, "session_limit"},
    {429, "session_memory_limit"},
    {429, "too_many_requests"},
    {431, "headers_too_large"},
    {500, ""},
    {500, "answer_too_large"},
    {501, ""},
    {503, "draining"},
    {503, "loading"},
    {503, "no_worker"},
    {503, "overloaded"},
    {503, "session_lost"},
    {504, "deadline_exceeded"},
    {505, ""},
};
constexpr std::array<std::string_view, 4> status_classes = {"2xx", "3xx", "4xx", "5xx"};

constexpr std::size_t source_count = static_cast<std::size_t>(draft::source::last_);
constexpr std::array<std::string_view, static_cast<std::size_t>(request_end::last_)> ends = {"stop", "length", "error",
                                                                                             "abort"};
constexpr std::array<std::string_view, 4> undelivered_reasons = {"unreachable", "mailbox_full", "malformed", "unknown"};
constexpr std::array<std::string_view, 3> span_fates = {"exported", "dropped", "failed"};
constexpr std::array<std::string_view, static_cast<std::size_t>(edit_verb::last_)> verbs = {
    "open", "show", "show_file", "put_file", "patch_file", "drop_file", "complete", "edit", "close"};

double to_seconds(microseconds time) { return static_cast<double>(time.count()) / 1e6; }

/// Follows a count of another actor. If that actor restarts, the counter waits until the new count overtakes it.
void follow(Counter& c, double total) {
  if (total > c.Value()) c.Increment(total - c.Value());
}

}  // namespace

struct gateway_probe::series {
  prometheus::Registry registry;
  std::mutex reading;  // guards the reading of /proc

  prometheus::Family<Counter>& counters(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name("redline_" + name).Help(help).Register(registry);
  }
  Counter& counter(const std::string& name, const std::string& help) { return counters(name, help).Add({}); }
  Gauge& gauge(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name("redline_" + name).Help(help).Register(registry).Add({});
  }
  Histogram& histogram(const std::string& name, const std::string& help, const Histogram::BucketBoundaries& bounds) {
    return prometheus::BuildHistogram().Name("redline_" + name).Help(help).Register(registry).Add({}, bounds);
  }
  Histogram& latency(const std::string& name, const std::string& help) {
    return histogram(name, help, latency_seconds);
  }
  template<std::size_t Count>
  std::array<Counter*, Count> labelled(const std::string& name, const std::string& help, const std::string& label,
                                       const std::array<std::string_view, Count>& values) {
    auto& family = counters(name, help);
    std::array<Counter*, Count> out;
    for (std::size_t i = 0; i < Count; ++i) out[i] = &family.Add({{label, std::string(values[i])}});
    return out;
  }
  /// One counter per source of drafts, and a last one for copied spans.
  std::array<Counter*, source_count + 1> by_source(const std::string& name, const std::string& help) {
    std::array<std::string_view, source_count + 1> names;
    for (const auto from : draft::all_sources) names[static_cast<std::size_t>(from)] = name_of(from);
    names.back() = "copy";
    return labelled(name, help, "source", names);
  }

  Histogram& time_to_first_token =
      latency("time_to_first_token_seconds", "Time from a request's arrival to the first text of its answer");
  Histogram& inter_token = histogram("inter_token_seconds",
                                     "Time from one token of an answer to the next; tokens that arrive together share "
                                     "it equally",
                                     gap_seconds);
  Histogram& queue = latency("queue_seconds", "Time that an answer's first round waited for its first pass");
  Histogram& request_seconds = latency("request_seconds", "Time from a request's arrival to its end");
  Histogram& prompt_lengths = histogram("request_prompt_tokens", "Prompt tokens of a finished request", length_tokens);
  Histogram& answer_lengths =
      histogram("request_generation_tokens", "Generated tokens of a finished answer", length_tokens);
  prometheus::Family<Counter>& responses = counters("http_responses_total", "HTTP responses by route and status class");
  std::map<std::string, std::array<Counter*, status_classes.size()>, std::less<>> responses_by_path;
  prometheus::Family<Counter>& refusals =
      counters("refused_total", "Requests refused, by status and error code, including errors sent in streams");
  std::map<std::pair<unsigned, std::string>, Counter*> refused;
  Counter& refused_with(unsigned status, const std::string& code) {
    auto& at = refused[{status, code}];
    if (at == nullptr) at = &refusals.Add({{"status", std::to_string(status)}, {"code", code}});
    return *at;
  }
  transport::refusal_counts refused_by_front{};  // as counted so far
  std::array<Counter*, ends.size()> requests =
      labelled("requests_total", "Finished requests by outcome", "reason", ends);
  Counter& prompt_tokens = counter("prompt_tokens_total", "Prompt tokens of finished requests");
  Counter& generation_tokens = counter("generation_tokens_total", "Generated tokens");
  std::array<Counter*, source_count + 1> drafted =
      by_source("spec_drafted_total", "Draft tokens verified, of finished answers");
  std::array<Counter*, source_count + 1> accepted =
      by_source("spec_accepted_total", "Draft tokens accepted, of finished answers");
  Counter& copied_forced = counter("copied_forced_total", "Tokens copied by edit programs without verification");
  Counter& streams_resumed = counter("streams_resumed_total", "Streams that clients resumed (Last-Event-ID)");
  Counter& edit_sessions_opened = counter("live_sessions_opened_total", "Opened edit sessions");
  std::array<Counter*, verbs.size()> edit_calls =
      labelled("live_calls_total", "Calls of edit sessions by verb", "verb", verbs);

  Gauge& ready = gauge("ready", "1 while requests are accepted, else 0");
  Gauge& edit_sessions = gauge("live_sessions", "Open edit sessions");
  Gauge& edit_bytes = gauge("live_bytes", "Bytes used by the files of edit sessions and their tokens");
  Counter& edit_bytes_refused =
      counter("live_bytes_refused_total", "Calls refused because edit sessions would have used too many bytes");
  Gauge& request_bytes = gauge("request_bytes", "Bytes used by requests in progress: bodies, prompts and answers");
  Counter& request_bytes_refused =
      counter("request_bytes_refused_total", "Requests refused or ended because they would have used too many bytes");
  Gauge& name_conflicts = gauge(
      "model_name_conflicts", "Names claimed by a model of the pool that belong to another model; the log lists them");
  Gauge& answers_running = gauge("answers_running", "Answers in progress at the gateway");
  Gauge& requests_running = gauge("requests_running", "Running sequences");
  Gauge& requests_waiting = gauge("requests_waiting", "Sequences waiting for admission");
  Gauge& pages_count = gauge("kv_pages", "KV pages of the target model");
  Gauge& pages_held = gauge("kv_pages_held", "KV pages in use");
  Gauge& pages_ratio = gauge("kv_usage_ratio", "Share of the KV pages in use, from 0 to 1");
  Gauge& states_count = gauge("states", "Slots for states of sequences, in models with recurrent layers");
  Gauge& states_held = gauge("states_held", "Slots for states in use");
  Gauge& state_copies_max = gauge("state_copies_max", "Most copies of states that cached prefixes can have");
  Gauge& state_copies = gauge("state_copies", "Copies of states that cached prefixes have");
  Counter& mtp_seconds = counter("mtp_seconds_total", "Time of drafts by the target model's MTP layer");
  Gauge& cost_error = gauge("cost_model_error_ratio", "Mean of |predicted - measured| / measured step time");
  Gauge& batch_fill = gauge(
      "batch_fill",
      "Running mean of the share of the decoding sequences in a pass, among those ready or submitted while it ran");
  Counter& waits = counter("pass_waits_total", "Passes that waited for sequences between two rounds of an answer");
  Counter& wait_seconds =
      counter("pass_wait_seconds_total", "Time that passes waited for sequences between two rounds of an answer");
  Counter& waits_missed =
      counter("pass_waits_missed_total", "Sequences that did not arrive while a pass waited for them");
  Counter& steps = counter("steps_total", "Forward passes of the target model");
  Counter& rows = counter("rows_total", "Rows computed by the target model");
  Counter& experts = counter("experts_touched_total",
                             "Distinct experts whose weights were read by passes of the target model, over all layers");
  Counter& step_seconds = counter("step_seconds_total", "Time spent in forward passes of the target model");
  Counter& queried_prompt_tokens =
      counter("queried_prompt_tokens_total", "Prompt tokens of new sequences, looked for in the prefix cache");
  Counter& cached_prompt_tokens = counter("cached_prompt_tokens_total", "Prompt tokens served from the prefix cache");
  Counter& preempted = counter("preempted_total", "Preempted sequences");
  std::array<Counter*, undelivered_reasons.size()> undelivered =
      labelled("undelivered_messages_total",
               "Messages between actors that were not delivered; unreachable is normal after an answer has ended",
               "reason", undelivered_reasons);
  std::array<Counter*, transport::bridge_refusal_names.size()> refused_by_bridge =
      labelled("bridge_refused_total", "Frames and connections from other processes that were refused", "reason",
               transport::bridge_refusal_names);
  std::array<Counter*, span_fates.size()> spans = labelled(
      "trace_spans_total",
      "Trace spans of this process by result: exported, dropped because too many were waiting, or failed because "
      "the collector did not accept them",
      "result", span_fates);
  prometheus::Family<Gauge>& handler_seconds =
      prometheus::BuildGauge()
          .Name("redline_handler_seconds_max")
          .Help("Longest time that an actor of this kind occupied its thread in the last one to two minutes")
          .Register(registry);
  Counter& overflowed = counter("overflowed_total", "Answers ended because the model computed no finite number");
  Counter& queue_refusals =
      counter("queue_refusals_total", "Sequences that the scheduler refused because its queue was full");
  process_series process{registry};

  series() {
    for (const auto& one : known_refusals) (void)refused_with(one.status, one.code);
    prometheus::BuildGauge()
        .Name("redline_build_info")
        .Help("Always 1; the labels give the version and the build")
        .Register(registry)
        .Add({{"version", version()}, {"build", build_version()}})
        .Set(1);
  }
};

gateway_probe::gateway_probe() : series_(std::make_unique<series>()) {}
gateway_probe::~gateway_probe() = default;

void gateway_probe::add_route(std::string_view path) {
  auto& by_class = series_->responses_by_path[std::string(path)];
  for (std::size_t i = 0; i < by_class.size(); ++i) {
    by_class[i] = &series_->responses.Add({{"path", std::string(path)}, {"status", std::string(status_classes[i])}});
  }
}

void gateway_probe::answered(std::string_view path, unsigned status) {
  const auto at = series_->responses_by_path.find(path);
  const std::size_t kind = status / 100 - 2;  // wraps for 0 and 100, which have no class
  if (at != series_->responses_by_path.end() && kind < status_classes.size()) at->second[kind]->Increment();
}

void gateway_probe::refused(unsigned status, const std::string& code) {
  series_->refused_with(status, code).Increment();
}

void gateway_probe::next_tokens(std::size_t count, microseconds since_last) {
  if (count == 0) return;
  const double each = to_seconds(since_last) / static_cast<double>(count);
  std::vector<double> increments(gap_seconds.size() + 1);
  const auto bucket = std::lower_bound(gap_seconds.begin(), gap_seconds.end(), each) - gap_seconds.begin();
  increments[static_cast<std::size_t>(bucket)] = static_cast<double>(count);
  series_->inter_token.ObserveMultiple(increments, to_seconds(since_last));
}

void gateway_probe::first_text(microseconds since_arrival) {
  series_->time_to_first_token.Observe(to_seconds(since_arrival));
}

void gateway_probe::tokens_generated(std::size_t count) {
  series_->generation_tokens.Increment(static_cast<double>(count));
}

void gateway_probe::answer_finished(const session_stats& stats) {
  if (stats.rounds > 0) series_->queue.Observe(static_cast<double>(stats.queued_us) / 1e6);
  for (const auto from : draft::all_sources) {
    const auto i = static_cast<std::size_t>(from);
    series_->drafted[i]->Increment(stats.of(from).drafted);
    series_->accepted[i]->Increment(stats.of(from).accepted);
  }
  series_->drafted.back()->Increment(stats.copied_verified + stats.copy_refused);
  series_->accepted.back()->Increment(stats.copied_verified);
  series_->copied_forced.Increment(stats.copied_forced);
}

void gateway_probe::prompt_read(std::uint64_t tokens) {
  series_->prompt_tokens.Increment(static_cast<double>(tokens));
  series_->prompt_lengths.Observe(static_cast<double>(tokens));
}

void gateway_probe::answer_read(std::uint64_t tokens) { series_->answer_lengths.Observe(static_cast<double>(tokens)); }

void gateway_probe::request_finished(request_end how, microseconds since_arrival) {
  series_->requests[static_cast<std::size_t>(how)]->Increment();
  series_->request_seconds.Observe(to_seconds(since_arrival));
}

gateway_probe::totals gateway_probe::read_totals() const {
  totals out{.tokens = static_cast<std::uint64_t>(series_->generation_tokens.Value())};
  for (std::size_t i = 0; i < series_->drafted.size(); ++i) {
    const std::string_view name = i < source_count ? draft::name_of(static_cast<draft::source>(i)) : "copy";
    const totals::of_source one{name, static_cast<std::uint64_t>(series_->drafted[i]->Value()),
                                static_cast<std::uint64_t>(series_->accepted[i]->Value())};
    out.drafted += one.drafted;
    out.accepted += one.accepted;
    if (one.drafted > 0) out.sources.push_back(one);
  }
  return out;
}

void gateway_probe::stream_resumed() { series_->streams_resumed.Increment(); }

void gateway_probe::edit_session_opened() { series_->edit_sessions_opened.Increment(); }

void gateway_probe::edit_call(edit_verb verb) { series_->edit_calls[static_cast<std::size_t>(verb)]->Increment(); }

void gateway_probe::look(const state& now) {
  auto& s = *series_;
  s.ready.Set(now.ready ? 1 : 0);
  s.edit_sessions.Set(static_cast<double>(now.edit_sessions));
  s.name_conflicts.Set(static_cast<double>(now.name_conflicts));
  s.edit_bytes.Set(static_cast<double>(now.edit_bytes));
  follow(s.edit_bytes_refused, static_cast<double>(now.edit_bytes_refused));
  s.request_bytes.Set(static_cast<double>(now.request_bytes));
  follow(s.request_bytes_refused, static_cast<double>(now.request_bytes_refused));
  s.answers_running.Set(static_cast<double>(now.answers_running));
  for (const auto& [actor, longest] : now.handlers) s.handler_seconds.Add({{"actor", actor}}).Set(to_seconds(longest));
  const auto& lost = now.undelivered;
  const std::array<std::uint64_t, undelivered_reasons.size()> lost_by_reason = {lost.unreachable, lost.mailbox_full,
                                                                                lost.malformed, lost.unknown};
  for (std::size_t i = 0; i < lost_by_reason.size(); ++i) {
    follow(*s.undelivered[i], static_cast<double>(lost_by_reason[i]));
  }
  for (std::size_t i = 0; i < now.refused_by_bridge.size(); ++i) {
    follow(*s.refused_by_bridge[i], static_cast<double>(now.refused_by_bridge[i]));
  }
  for (std::size_t i = 0; i < now.refused_by_front.size(); ++i) {
    const auto& why = transport::refusals::all[i];
    const auto more = now.refused_by_front[i] - std::exchange(s.refused_by_front[i], now.refused_by_front[i]);
    if (more > 0) s.refused_with(why.status, std::string(why.code)).Increment(static_cast<double>(more));
  }
  const std::array<std::uint64_t, span_fates.size()> fates = {now.spans.exported, now.spans.dropped, now.spans.failed};
  for (std::size_t i = 0; i < fates.size(); ++i) follow(*s.spans[i], static_cast<double>(fates[i]));
  if (now.scheduler != nullptr) {
    const auto& r = *now.scheduler;
    s.requests_running.Set(r.running_count);
    s.requests_waiting.Set(r.waiting_count);
    s.pages_count.Set(r.pages_count);
    s.pages_held.Set(r.pages_held);
    s.pages_ratio.Set(r.pages_count > 0 ? static_cast<double>(r.pages_held) / r.pages_count : 0);
    s.states_count.Set(r.states_count);
    s.states_held.Set(r.states_held);
    s.state_copies_max.Set(r.state_copies_max);
    s.state_copies.Set(r.state_copies);
    follow(s.mtp_seconds, static_cast<double>(r.mtp_us_total) / 1e6);
    s.cost_error.Set(r.cost_error_ratio);
    s.batch_fill.Set(r.batch_fill);
    follow(s.waits, static_cast<double>(r.waits_total));
    follow(s.wait_seconds, static_cast<double>(r.waited_us_total) / 1e6);
    follow(s.waits_missed, static_cast<double>(r.waits_missed_total));
    follow(s.steps, static_cast<double>(r.batches_total));
    follow(s.rows, static_cast<double>(r.rows_total));
    follow(s.experts, static_cast<double>(r.experts_total));
    follow(s.step_seconds, static_cast<double>(r.forward_us_total) / 1e6);
    follow(s.queried_prompt_tokens, static_cast<double>(r.queried_total));
    follow(s.cached_prompt_tokens, static_cast<double>(r.cached_total));
    follow(s.preempted, static_cast<double>(r.preempted_total));
    follow(s.overflowed, static_cast<double>(r.overflowed_total));
    follow(s.queue_refusals, static_cast<double>(r.refused_total));
  }
}

std::string gateway_probe::write(const std::optional<vllm_facts>& as_vllm) const {
  auto& s = *series_;
  {
    const std::lock_guard lock(s.reading);  // against two scrapes at once
    s.process.refresh();
  }
  auto families = s.registry.Collect();
  if (as_vllm) append_vllm_metrics(families, *as_vllm);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace redline::actors
