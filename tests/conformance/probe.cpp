// Reads questions from standard input as JSON, one per line, and answers each with one line: the result of a schema, a
// grammar or a chat template for some texts or conversations. Used by conformance.py.
//
//   {"schema": JSON, "texts": [TEXT, ...]}        {"us": NUMBER, "accepted": [BOOLEAN, ...]}
//   {"grammar": TEXT, "texts": [TEXT, ...]}       the same
//   {"template": TEXT, "chats": [OBJECT, ...]}    {"texts": [{"text": TEXT} or {"why": TEXT}, ...]}
//
// The answer for input that cannot be compiled or parsed is {"why": TEXT}.

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/grammar/automata/rules_automaton.hpp"
#include "runtime/grammar/json_schema.hpp"
#include "runtime/jinja/chat_template.hpp"

namespace redline {
namespace {

using json = nlohmann::ordered_json;

json why(const failure& f) { return {{"why", f.context.empty() ? f.describe() : f.context}}; }

bool accepts(const grammar::byte_automaton& m, std::string_view text) {
  grammar::automaton_state s = m.begin();
  for (const char c : text) {
    if (!m.advance(s, static_cast<std::uint8_t>(c))) return false;
  }
  return m.is_accepting(s);
}

/// compile: returns a pointer to an automaton, or a failure.
template<class Compile>
json try_texts(const json& question, Compile compile) {
  const auto began = std::chrono::steady_clock::now();
  const auto made = compile();
  const auto took = std::chrono::steady_clock::now() - began;
  if (!made) return why(made.error());
  json accepted = json::array();
  for (const auto& text : question.at("texts")) accepted.push_back(accepts(**made, text.get<std::string>()));
  return {{"us", std::chrono::duration_cast<std::chrono::microseconds>(took).count()},
          {"accepted", std::move(accepted)}};
}

jinja::chat_input to_input(const json& chat) {
  jinja::chat_input in;
  in.messages = chat.at("messages");
  in.add_generation_prompt = chat.value("add_generation_prompt", true);
  in.variables = chat.value("variables", json::object());
  in.bos_token = chat.value("bos_token", "");
  in.eos_token = chat.value("eos_token", "");
  in.now = chat.value("now", std::int64_t{0});
  return in;
}

json try_chats(const json& question) {
  const auto made = jinja::chat_template::parse(question.at("template").get<std::string>());
  if (!made) return why(made.error());
  json texts = json::array();
  for (const auto& chat : question.at("chats")) {
    const auto text = made->render(to_input(chat));
    texts.push_back(text ? json{{"text", *text}} : why(text.error()));
  }
  return {{"texts", std::move(texts)}};
}

json answer(const json& question) {
  if (question.contains("schema"))
    return try_texts(question, [&] { return grammar::compile_schema(question["schema"].dump()); });
  if (question.contains("grammar"))
    return try_texts(question,
                     [&] { return grammar::rules_automaton::compile(question["grammar"].get<std::string>()); });
  return try_chats(question);
}

}  // namespace
}  // namespace redline

int main() {
  using redline::json;
  for (std::string line; std::getline(std::cin, line);) {
    json said;
    try {
      said = redline::answer(json::parse(line));
    } catch (const json::exception& e) {
      said = {{"why", std::string("the question is not understood: ") + e.what()}};
    }
    std::cout << said.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
  }
}
