#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/request/generation_request.hpp"

// Shared by the readers of other APIs. Each translates its request to OpenAI's chat request, which is then read like
// any other, so that no rule is written twice.

namespace redline::api {

/// The name of a member in another API and in OpenAI's.
struct renamed_member {
  std::string_view theirs, ours;
};

/// Copies the members that are present and not null.
void copy_members(const json& from, json& to, std::initializer_list<renamed_member> names);

/// Copies Redline's own members, which every API accepts: how to draft, and what the answer is expected to be.
void copy_our_members(const json& from, json& to);

/// Text given as a string, or as parts of one of `types`, each with a "text". Joins the parts by `separator`. Leaves
/// out parts of `skipped` types. Anything else is an error at `name`.
std::string read_texts(field_reader& fields, std::string_view name, std::initializer_list<std::string_view> types,
                       std::initializer_list<std::string_view> skipped, std::string_view separator,
                       std::optional<api_error>& error);

/// Reads OpenAI's form of a translated request. names: the members that errors refer to.
checked<generation_request> read_translated(const json& body, std::shared_ptr<const answer_shape> shape,
                                            std::initializer_list<renamed_member> names, const request_limits& limits,
                                            endpoint from = endpoint::chat);

}  // namespace redline::api
