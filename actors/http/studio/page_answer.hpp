#pragma once

#include <string>

#include "actors/http/studio/studio_files.hpp"
#include "actors/messages/http_messages.hpp"

namespace redline::actors {

/// How a file of the studio is sent.
struct page_answer {
  unsigned status = 200;  // or 304: the browser has it
  header_list headers;    // without Content-Type
  std::string body;
};

/// asked: the request's headers. The file's digest tells what a browser has; the bytes are not looked at.
[[nodiscard]] page_answer answer_with(const studio_file& file, const header_list& asked);

}  // namespace redline::actors
