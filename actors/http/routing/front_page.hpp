#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redline::actors {

/// What a person sees who opens the server's address in a browser.
struct front_page {
  struct model {
    std::string name;
    std::uint32_t context_tokens = 0;
  };
  struct path {
    std::string_view method, pattern;
  };
  std::string version;
  std::string state;          // "ready", or why not
  bool lacks_studio = false;  // the build has no page
  bool needs_key = false;     // then nothing is said of the models
  std::string base_url;       // by which the reader came
  std::vector<model> models;
  std::vector<path> paths;

  static constexpr std::string_view content_type = "text/html; charset=utf-8";
  [[nodiscard]] std::string html() const;
};

}  // namespace redline::actors
