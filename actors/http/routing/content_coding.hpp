#pragma once

#include <cstddef>
#include <string>

#include "actors/http/fields/api_error.hpp"
#include "actors/messages/http_messages.hpp"

namespace redline::actors {

/// How a request's body was packed for the way.
struct content_coding {
  bool is_gzip = false;
  std::size_t bytes = 0;  // of the body, unpacked

  /// By the request's headers and the body's size. 415 for what is not understood, 413 for what is too large unpacked.
  static api::checked<content_coding> read(const header_list& headers, const std::string& body);
  /// On any thread: takes time by `bytes`. 400 when it is not what it says.
  [[nodiscard]] api::checked<std::string> unpack(std::string body) const;
};

}  // namespace redline::actors
