#include "actors/http/studio/page_answer.hpp"

#include <string_view>

#include "actors/http/routing/headers.hpp"

namespace redline::actors {
namespace {

/// Allows only the page's own files, and no inline script or style.
constexpr std::string_view policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

bool takes_gzip(const header_list& asked) {
  const auto* takes = find_header(asked, "accept-encoding");
  if (takes == nullptr) return false;
  const auto at = takes->find("gzip");
  if (at == std::string::npos) return false;
  // "gzip;q=0" refuses gzip; "gzip;q=0.5" accepts it.
  const auto weight = std::string_view(*takes).substr(at + 4, takes->find(',', at) - (at + 4));
  const auto value = weight.find("q=");
  return value == std::string_view::npos || weight.find_first_of("123456789", value) != std::string_view::npos;
}

}  // namespace

page_answer answer_with(const studio_file& file, const header_list& asked) {
  // A weak tag, because the compressed bytes share it.
  const std::string tag = "W/\"" + std::string(file.digest) + "\"";
  page_answer out{.headers = {{"ETag", tag},
                              {"Cache-Control", "no-cache"},
                              {"Vary", "Accept-Encoding"},
                              {"X-Content-Type-Options", "nosniff"},
                              {"Referrer-Policy", "no-referrer"},
                              {"Content-Security-Policy", std::string(policy)}}};
  const auto* had = find_header(asked, "if-none-match");
  if (had != nullptr && had->find(tag) != std::string::npos) {
    out.status = 304;
  } else if (takes_gzip(asked)) {
    out.headers.emplace_back("Content-Encoding", "gzip");
    out.body = file.gzip;
  } else {
    out.body = file.bytes;
  }
  return out;
}

}  // namespace redline::actors
