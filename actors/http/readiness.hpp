#pragma once

#include <optional>
#include <string>
#include <utility>

#include "actors/http/fields/api_error.hpp"
#include "actors/messages/status_messages.hpp"
#include "runtime/base/environment.hpp"

namespace redline::actors {

/// Whether requests can be served now, according to the scheduler's latest report.
class readiness {
 public:
  void hear(const scheduler_report& report, instant now) {
    scheduler_ = report;
    heard_ = now;
  }
  /// why: the reason, if more is known than that the scheduler cannot be reached.
  void lose_scheduler(std::string why = {}) {
    scheduler_.reset();
    why_lost_ = std::move(why);
  }
  void drain() { draining_ = true; }

  [[nodiscard]] bool draining() const { return draining_; }
  /// Null before the first report and while the scheduler cannot be reached.
  [[nodiscard]] const scheduler_report* scheduler() const { return scheduler_ ? &*scheduler_ : nullptr; }

  [[nodiscard]] std::optional<api::api_error> why_not(instant now) const {
    if (draining_) return api::error_of({errc::draining, "the server is shutting down"});
    if (scheduler_ && scheduler_->ready && now - heard_ <= silence_max) return std::nullopt;
    auto error = api::error_of({errc::not_ready, ""});
    const std::string& why = scheduler_ ? scheduler_->why_not : why_lost_;
    if (!why.empty()) error.message = "The target model cannot be used: " + why + ".";
    return error;
  }

 private:
  static constexpr microseconds silence_max{5'000'000};
  std::optional<scheduler_report> scheduler_;
  std::string why_lost_;
  instant heard_;
  bool draining_ = false;
};

}  // namespace redline::actors
