#pragma once

#include <optional>

#include "actors/http/openai/api_error.hpp"
#include "actors/messages/status_messages.hpp"
#include "runtime/base/environment.hpp"

namespace redline::actors {

/// Whether requests can be served now, by the scheduler's latest report.
class readiness {
 public:
  void hear(const scheduler_report& report, instant now) {
    scheduler_ = report;
    heard_ = now;
  }
  void lose_scheduler() { scheduler_.reset(); }
  void drain() { draining_ = true; }

  [[nodiscard]] bool draining() const { return draining_; }
  /// Null before the first report and while the scheduler cannot be reached.
  [[nodiscard]] const scheduler_report* scheduler() const { return scheduler_ ? &*scheduler_ : nullptr; }

  [[nodiscard]] std::optional<api::api_error> why_not(instant now) const {
    if (draining_) return api::error_of({errc::draining, "the server is shutting down"});
    if (scheduler_ && scheduler_->ready && now - heard_ <= silence_max) return std::nullopt;
    return api::error_of({errc::not_ready, "the model is loading or cannot be reached"});
  }

 private:
  static constexpr microseconds silence_max{5'000'000};
  std::optional<scheduler_report> scheduler_;
  instant heard_;
  bool draining_ = false;
};

}  // namespace redline::actors
