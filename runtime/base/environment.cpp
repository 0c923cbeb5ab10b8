#include "runtime/base/environment.hpp"

#include <random>

namespace redline {
namespace {

class real final : public environment {
 public:
  [[nodiscard]] instant now() const override {
    return std::chrono::time_point_cast<microseconds>(std::chrono::steady_clock::now());
  }
  [[nodiscard]] std::int64_t unix_seconds() const override {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  std::uint64_t random() override {
    thread_local std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
  }
};

}  // namespace

environment& real_environment() {
  static real instance;
  return instance;
}

}  // namespace redline
