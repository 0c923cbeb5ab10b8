#include "actors/cli/server_address.hpp"

namespace redline::actors::cli {

result<server_address> server_address::parse(const std::string& url, const std::string& api_key) {
  server_address s;
  REDLINE_TRY_ASSIGN(s.url, transport::parse_http_url(url));
  while (s.url.target.ends_with('/')) s.url.target.pop_back();
  if (s.url.target.ends_with("/v1")) s.url.target.resize(s.url.target.size() - 3);
  s.headers.push_back({"Content-Type", "application/json"});
  if (!api_key.empty()) s.headers.push_back({"Authorization", "Bearer " + api_key});
  return s;
}

}  // namespace redline::actors::cli
