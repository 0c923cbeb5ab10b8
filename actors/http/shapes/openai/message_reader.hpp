#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/request/generation_request.hpp"

namespace redline::api {

/// Text given as an array of {"type": "text", "text": ...}, joined by `separator`. name: the array's name.
std::string read_text_parts(field_reader& fields, std::string_view name, const json& parts, std::string_view separator,
                            const request_limits& limits, std::optional<api_error>& error);

/// Converts a client's messages to those that a chat template reads.
class message_reader {
 public:
  message_reader(const request_limits& limits, std::optional<api_error>& error) : limits_(limits), error_(error) {}

  json read(field_reader& request);

 private:
  json read_message(const json& given, const std::string& path);
  std::string read_role(field_reader& fields);
  std::optional<std::string> read_content(field_reader& fields);
  json read_calls(field_reader& fields);
  json read_call(field_reader& function, const std::string& id);
  void count_bytes(field_reader& fields, std::string_view name, std::size_t bytes);

  const request_limits& limits_;
  std::optional<api_error>& error_;
  std::size_t text_bytes_ = 0;
  std::string legacy_call_;  // id given to the last function_call, which has none itself
};

}  // namespace redline::api
