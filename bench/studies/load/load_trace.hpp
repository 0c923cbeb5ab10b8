#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cli/server_address.hpp"
#include "bench/studies/load/load_plan.hpp"
#include "runtime/base/result.hpp"

namespace redline::studies {

/// Parses recorded requests: one JSON object per line with "at" (seconds since the first), "max_tokens", and the
/// question as "messages", "prompt", or "prompt_tokens" (a made-up prompt of about that length). Optional fields are
/// "tenant", "temperature" and "session". Requests of one session follow each other, each when it is due and "think"
/// seconds (default 0) after the previous answer; their made-up prompts begin alike. Empty lines and other fields are
/// skipped. A speed of 2 sends everything in half the time. A failure names the line and the field.
result<std::vector<planned_request>> parse_trace(std::string_view lines, const std::string& name, double speed);

/// The whole sessions of a trace that the i-th of `agents` agents sends.
std::vector<planned_request> share_of_trace(std::vector<planned_request> all, std::size_t i, std::size_t agents);

/// A server, and the keys by which it distinguishes tenants.
class tenant_doors {
 public:
  /// `keys` has lines TENANT:KEY. Tenants without one, and requests without a tenant, use the server's own key.
  static result<tenant_doors> make(const std::string& url, const std::string& api_key, std::string_view keys);
  [[nodiscard]] const server_address& of(const std::string& tenant) const;
  [[nodiscard]] std::vector<std::string> tenants() const;

 private:
  server_address own_;
  std::map<std::string, server_address> by_tenant_;
};

}  // namespace redline::studies
