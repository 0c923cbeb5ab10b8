#pragma once

#include <cstdint>

#include "runtime/base/environment.hpp"

namespace redline::scheduler {

constexpr instant at(std::int64_t us) { return instant{microseconds{us}}; }

}  // namespace redline::scheduler
