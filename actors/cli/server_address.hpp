#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "transport/http_client.hpp"

namespace redline::actors::cli {

/// A server as the command line names it.
struct server_address {
  transport::http_url url;  // root of the API; target without a final slash
  std::vector<transport::http_header> headers;

  static result<server_address> parse(const std::string& url, const std::string& api_key);
};

}  // namespace redline::actors::cli
