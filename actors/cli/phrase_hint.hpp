#pragma once

#include <span>
#include <string>

namespace redline::actors::cli {

/// A hint for a user whose instruction changed nothing: that the model knows few phrases, with some of them. Empty for
/// a model that understands instructions in general. Contains no terminal control sequences.
std::string phrase_hint(std::span<const std::string> phrases);
/// The hint for the model that answered: the first one of `server`, or if that is empty, the one in the file. Empty if
/// neither can be read.
std::string phrase_hint_of(const std::string& model_path, const std::string& server, const std::string& api_key);

}  // namespace redline::actors::cli
