#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/ids.hpp"

namespace redline::actor {

/// Number of a process, 24 bits, drawn when it starts; 0 means none. Among a thousand processes two share a number with
/// a chance of 3 %, and then the broker refuses the second.
using process_number = std::uint32_t;
inline constexpr process_number process_number_max = (1U << 24) - 1;

/// Where an actor runs: process (24 bits), worker thread in it (8 bits), actor on it (32 bits). 0 means none.
using address = strong_id<struct address_tag>;

constexpr address make_address(process_number process, std::uint16_t worker, std::uint32_t number) {
  return {(static_cast<std::uint64_t>(process & process_number_max) << 40) |
          (static_cast<std::uint64_t>(worker & 0xff) << 32) | number};
}
constexpr process_number process_of(address a) { return static_cast<process_number>(a.value >> 40); }
constexpr std::uint16_t worker_of(address a) { return static_cast<std::uint16_t>((a.value >> 32) & 0xff); }
constexpr std::uint32_t number_of(address a) { return static_cast<std::uint32_t>(a.value); }
/// Process and worker together, by which a link routes.
constexpr std::uint32_t node_of(address a) { return static_cast<std::uint32_t>(a.value >> 32); }

/// "1.2.17" for logs.
inline std::string to_string(address a) {
  return std::to_string(process_of(a)) + "." + std::to_string(worker_of(a)) + "." + std::to_string(number_of(a));
}

}  // namespace redline::actor
