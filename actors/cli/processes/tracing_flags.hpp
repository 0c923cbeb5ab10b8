#pragma once

#include <functional>
#include <optional>
#include <string>

#include "actors/cli/flags/command_line.hpp"
#include "runtime/base/result.hpp"
#include "transport/otlp_exporter.hpp"

namespace redline::actors::cli {

struct tracing_flags {
  std::string otlp_endpoint;  // empty: what the environment says, else none
  double ratio = 1;           // of the traces that begin here, the share that is recorded
};
void add_tracing_flags(command c, tracing_flags& flags);
/// For processes where traces begin.
void add_sampling_flag(command c, tracing_flags& flags);

/// The value of a variable of the environment; empty where it is not set.
using environment_reader = std::function<std::string(const char* name)>;
std::string environment_variable(const char* name);

/// Where this process's traces go, by the flag or by OpenTelemetry's variables; none: nothing is traced. service: the
/// name that it has unless the environment says another. Fails for an address or a list that cannot be read.
result<std::optional<transport::otlp_options>> to_otlp_options(const tracing_flags& flags, const std::string& service,
                                                               const environment_reader& environment);

}  // namespace redline::actors::cli
