#pragma once

#include <span>
#include <string>

namespace redline::actors::cli {

/// What to tell a person whose instruction changed nothing: that the model knows few phrases, with some of them. Empty
/// for a model that understands instructions in general. Never holds what a terminal would obey.
std::string phrase_hint(std::span<const std::string> phrases);
/// The same for the model that answered: the server's first one, or, where `server` is empty, that of the file. Empty
/// too where neither can be asked.
std::string phrase_hint_of(const std::string& model_path, const std::string& server, const std::string& api_key);

}  // namespace redline::actors::cli
