#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "actors/http/fields/api_error.hpp"
#include "actors/messages/http_messages.hpp"

namespace redline::actors {

/// How a request's body was encoded for transport.
struct content_coding {
  enum class kind : std::uint8_t { none, gzip, brotli };
  kind how = kind::none;
  std::size_t bytes = 0;  // size of the decoded body; of brotli, which does not state it, the most that is allowed

  /// Reads the headers and the body. Returns 415 for an unknown coding and 413 if the decoded body is too large.
  static api::checked<content_coding> read(const header_list& headers, const std::string& body);
  /// Callable on any thread; the time is proportional to `bytes`. Returns 400 if the body does not match its coding, and
  /// 413 if it becomes too large.
  [[nodiscard]] api::checked<std::string> unpack(std::string body) const;
};

}  // namespace redline::actors
