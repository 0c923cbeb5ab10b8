#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/trace/otlp_json.hpp"
#include "runtime/trace/tracer.hpp"
#include "transport/http_client.hpp"

namespace redline::transport {

struct otlp_options {
  http_url url;  // where spans are posted
  std::vector<http_header> headers;
  trace::resource resource;
  std::chrono::milliseconds batch_patience{1'000};  // how long a span waits for others
  std::chrono::milliseconds retry_first{1'000};     // after the first attempt; doubled after each further one
  std::chrono::milliseconds answer_timeout{10'000};
  std::chrono::milliseconds last_timeout{2'000};  // for the remaining spans when the process ends
};

/// Posts a tracer's spans to an OpenTelemetry collector, in JSON, from its own thread. Spans that the collector does
/// not take after some attempts are counted as failed and logged, at most once a minute.
class otlp_exporter {
 public:
  static constexpr std::size_t batch_spans_max = 512;
  static constexpr int attempts_max = 4;

  otlp_exporter(std::shared_ptr<trace::tracer> from, otlp_options options);
  /// Sends the remaining spans within `last_timeout`.
  ~otlp_exporter();
  otlp_exporter(const otlp_exporter&) = delete;
  otlp_exporter& operator=(const otlp_exporter&) = delete;

 private:
  void run();
  void send(const std::vector<trace::span>& spans);
  /// nullopt if the spans were taken or finally refused; otherwise how long to wait for the next attempt.
  [[nodiscard]] std::optional<std::chrono::milliseconds> attempt(const std::string& body, std::size_t count,
                                                                 std::chrono::milliseconds usual_pause);
  void complain(const std::string& why);
  void wait_for_last(std::chrono::milliseconds pause);

  std::shared_ptr<trace::tracer> from_;
  otlp_options options_;
  trace::clock_offset clock_ = trace::clock_offset::read();
  std::string problem_;  // the reason the last attempt failed
  std::chrono::steady_clock::time_point quiet_until_{};
  std::atomic<bool> given_up_ = false;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace redline::transport
