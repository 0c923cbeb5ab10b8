#pragma once

#include <string>

#include "actors/http/studio/studio_files.hpp"
#include "actors/messages/http_messages.hpp"

namespace redline::actors {

/// The answer that sends a file of the studio.
struct page_answer {
  unsigned status = 200;  // 304 if the browser has the file
  header_list headers;    // without Content-Type
  std::string body;
};

/// asked: the request's headers. Decides by the file's digest whether the browser has it, without reading the bytes.
[[nodiscard]] page_answer answer_with(const studio_file& file, const header_list& asked);

}  // namespace redline::actors
