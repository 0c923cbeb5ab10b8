#include "actors/prompts/known_phrases.hpp"

namespace redline::actors {

std::vector<std::string> known_phrases(const gguf::gguf_file& model) {
  const auto name = model.get_string("general.name");
  if (!name || !name->starts_with("Redline demo ")) return {};
  // The same as in bench/demo_models/recipe/edits.py, which made the models' training data.
  return {"Rename `old` to `new`.", "Set `LIMIT` to 5.", "Change the string \"old\" to \"new\".",
          "Add the docstring \"What it does.\" to `f`."};
}

}  // namespace redline::actors
