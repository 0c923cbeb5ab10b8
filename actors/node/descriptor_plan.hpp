#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/result.hpp"

namespace redline::actors {

/// Raises this process's limit of open files as far as it may, and returns it.
std::uint64_t raise_descriptor_limit();

/// How many files, sockets and the like this process has open.
std::uint64_t count_open_descriptors();

/// Descriptors for everything except connections and what is open when the server begins to listen.
inline constexpr std::uint64_t descriptors_reserved = 64     // ZeroMQ's sockets between threads that do not exist yet
                                                      + 64   // model files, worker processes, logs
                                                      + 64;  // clients that are refused because the server is full

/// How many of the wanted connections fit. Fails when hardly any do.
result<std::size_t> plan_connections(std::size_t wanted, std::uint64_t limit, std::uint64_t open);

}  // namespace redline::actors
