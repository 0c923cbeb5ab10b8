#include "transport/otlp_exporter.hpp"

#include <pthread.h>

#include <algorithm>
#include <charconv>

#include "runtime/base/hex.hpp"
#include "runtime/base/log.hpp"

namespace redline::transport {
namespace {

constexpr std::chrono::milliseconds pause_step{20};
constexpr std::chrono::seconds retry_after_max{30};
constexpr std::chrono::minutes between_complaints{1};
constexpr std::uint64_t answer_bytes_max = 64 << 10;
constexpr std::size_t shown_bytes_max = 200;

/// The statuses that the protocol calls retryable.
bool may_pass_later(unsigned status) { return status == 429 || status == 502 || status == 503 || status == 504; }

}  // namespace

otlp_exporter::otlp_exporter(std::shared_ptr<trace::tracer> from, otlp_options options)
    : from_(std::move(from)), options_(std::move(options)) {
  options_.headers.push_back({"Content-Type", "application/json"});
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "redline-otlp");
    run();
  });
}

otlp_exporter::~otlp_exporter() {
  from_->stop();
  const auto until = std::chrono::steady_clock::now() + options_.last_timeout;
  while (!ended_ && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(pause_step);
  given_up_ = true;
  thread_.join();
}

void otlp_exporter::run() {
  for (;;) {
    const bool is_last = from_->is_stopped();
    const auto spans = from_->take(batch_spans_max, options_.batch_patience);
    if (!spans.empty()) {
      send(spans);
    } else if (is_last) {
      break;
    }
  }
  ended_ = true;
}

void otlp_exporter::send(const std::vector<trace::span>& spans) {
  const std::string body = trace::encode_otlp(options_.resource, spans, clock_);
  auto pause = options_.retry_first;
  for (int i = 1; !given_up_; ++i, pause *= 2) {
    const auto again = attempt(body, spans.size(), pause);
    if (!again) return;
    if (i == attempts_max || from_->is_stopped()) break;
    wait_for_last(*again);
  }
  from_->note_failed(spans.size());
  complain(std::to_string(spans.size()) + " spans are lost: " + problem_);
}

std::optional<std::chrono::milliseconds> otlp_exporter::attempt(const std::string& body, std::size_t count,
                                                                std::chrono::milliseconds usual_pause) {
  const auto answer = http_post(options_.url, options_.headers, body,
                                {.connect_timeout = options_.answer_timeout,
                                 .silence_timeout = options_.answer_timeout,
                                 .body_bytes_max = answer_bytes_max,
                                 .given_up = &given_up_});
  if (!answer) {
    problem_ = answer.error().describe();
    return usual_pause;
  }
  if (answer->status / 100 == 2) {
    const auto rejected = std::min<std::uint64_t>(trace::read_rejected_spans(answer->body), count);
    from_->note_exported(count - rejected);
    from_->note_failed(rejected);
    if (rejected > 0) complain("the collector refused " + std::to_string(rejected) + " spans");
    return std::nullopt;
  }
  problem_ = "the collector answered with HTTP status " + std::to_string(answer->status) + " " +
             quote_bytes(answer->body, shown_bytes_max);
  if (!may_pass_later(answer->status)) {
    from_->note_failed(count);
    complain(std::to_string(count) + " spans are lost: " + problem_);
    return std::nullopt;
  }
  int seconds = 0;
  if (const auto* wanted = answer->header("retry-after")) {
    const char* const end = wanted->data() + wanted->size();
    if (std::from_chars(wanted->data(), end, seconds).ptr != end) seconds = 0;  // the header is a date
  }
  return std::max<std::chrono::milliseconds>(
      usual_pause, std::chrono::seconds(std::clamp<int>(seconds, 0, static_cast<int>(retry_after_max.count()))));
}

/// Waits for less time if the process ends.
void otlp_exporter::wait_for_last(std::chrono::milliseconds pause) {
  const auto until = std::chrono::steady_clock::now() + pause;
  while (!from_->is_stopped() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(pause_step);
}

void otlp_exporter::complain(const std::string& why) {
  const auto now = std::chrono::steady_clock::now();
  if (now < quiet_until_) return;
  quiet_until_ = now + between_complaints;
  log_line(log_level::warning, "traces", why);
}

}  // namespace redline::transport
