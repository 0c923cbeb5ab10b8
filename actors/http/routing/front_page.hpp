#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redline::actors {

/// The page for a user who opens the server's address in a browser.
struct front_page {
  struct model {
    std::string name;
    std::uint32_t context_tokens = 0;
  };
  struct path {
    std::string_view method, pattern;
  };
  std::string version;
  std::string state;          // "ready", or the reason why not
  bool lacks_studio = false;  // the build has no studio page
  bool needs_key = false;     // if true, the page does not mention the models
  std::string base_url;       // the address that the reader used
  std::vector<model> models;
  std::vector<path> paths;

  static constexpr std::string_view content_type = "text/html; charset=utf-8";
  [[nodiscard]] std::string html() const;
};

}  // namespace redline::actors
