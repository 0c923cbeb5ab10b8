#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/request/generation_request.hpp"

// What the readers of other APIs have in common: each makes OpenAI's chat request of its own, which is then read like
// any other, so that no rule stands twice.

namespace redline::api {

/// Members of a foreign request under their name in OpenAI's.
struct renamed_member {
  std::string_view theirs, ours;
};

/// Copies the members that there are and that are not null.
void copy_members(const json& from, json& to, std::initializer_list<renamed_member> names);

/// Members of our own that go through every API: how drafts are made, and what the answer is expected to be.
void copy_our_members(const json& from, json& to);

/// Text given as a string, or as parts of one of the types, each with a "text"; joined by `separator`. Parts of
/// `skipped` types are left out. Anything else is an error at `name`.
std::string read_texts(field_reader& fields, std::string_view name, std::initializer_list<std::string_view> types,
                       std::initializer_list<std::string_view> skipped, std::string_view separator,
                       std::optional<api_error>& error);

/// Reads OpenAI's request that was made of a foreign one. names: of members that an error is about.
checked<generation_request> read_translated(const json& body, std::shared_ptr<const answer_shape> shape,
                                            std::initializer_list<renamed_member> names, const request_limits& limits,
                                            endpoint from = endpoint::chat);

}  // namespace redline::api
