#include "actors/prompts/known_phrases.hpp"

namespace redline::actors {

std::vector<std::string> known_phrases(const gguf::gguf_file& model) {
  const auto name = model.get_string("general.name");
  if (!name || !name->starts_with("Redline demo ")) return {};
  // Among the wordings of bench/demo_models/recipe, from which the models learned.
  return {"Rename `old` to `new`.", "Set `LIMIT` to 5.", "Change the string \"old\" to \"new\".",
          "Add the docstring \"What it does.\" to `f`."};
}

}  // namespace redline::actors
