#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/ids.hpp"

namespace redline::actor {

/// Where an actor lives: process (16 bits), worker thread in it (16 bits), actor on it (32 bits). 0 is nobody.
using address = strong_id<struct address_tag>;

constexpr address make_address(std::uint16_t process, std::uint16_t worker, std::uint32_t number) {
  return {(static_cast<std::uint64_t>(process) << 48) | (static_cast<std::uint64_t>(worker) << 32) | number};
}
constexpr std::uint16_t process_of(address a) { return static_cast<std::uint16_t>(a.value >> 48); }
constexpr std::uint16_t worker_of(address a) { return static_cast<std::uint16_t>(a.value >> 32); }
constexpr std::uint32_t number_of(address a) { return static_cast<std::uint32_t>(a.value); }
/// Process and worker together: what a link routes by.
constexpr std::uint32_t node_of(address a) { return static_cast<std::uint32_t>(a.value >> 32); }

/// "1.2.17" for logs.
inline std::string to_string(address a) {
  return std::to_string(process_of(a)) + "." + std::to_string(worker_of(a)) + "." + std::to_string(number_of(a));
}

}  // namespace redline::actor
