#pragma once

#include <functional>
#include <optional>
#include <string>

#include "actors/cli/flags/command_line.hpp"
#include "runtime/base/result.hpp"
#include "transport/otlp_exporter.hpp"

namespace redline::actors::cli {

struct tracing_flags {
  std::string otlp_endpoint;  // if empty, the environment decides; default none
  double ratio = 1;           // share of the traces begun here that is recorded
};
void add_tracing_flags(command c, tracing_flags& flags);
/// For processes where traces begin.
void add_sampling_flag(command c, tracing_flags& flags);

/// The value of an environment variable; empty if it is not set.
using environment_reader = std::function<std::string(const char* name)>;
std::string environment_variable(const char* name);

/// The destination of this process's traces, from the flag or OpenTelemetry's variables; nullopt if nothing is traced.
/// service: its name unless the environment gives another. Fails for an address or list that cannot be parsed.
result<std::optional<transport::otlp_options>> to_otlp_options(const tracing_flags& flags, const std::string& service,
                                                               const environment_reader& environment);

}  // namespace redline::actors::cli
