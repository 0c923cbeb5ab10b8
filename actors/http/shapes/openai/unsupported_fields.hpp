#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/fields/field_reader.hpp"
#include "actors/http/fields/json.hpp"
#include "actors/http/request/generation_request.hpp"

namespace redline::api {

/// Refuses fields that other servers support, that would change the answer and that Redline does not support. A field
/// whose value asks for nothing is accepted.
std::optional<api_error> find_unsupported(const json& body, endpoint from);

/// The unread members that ask for something: unsupported hints and unknown names. At most `ignored_fields_max`, each
/// cut to 64 bytes.
std::vector<std::string> list_ignored(std::span<const field_reader::named_value> unread);
inline constexpr std::size_t ignored_fields_max = 32;

}  // namespace redline::api
