#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace redline::test {

/// Kinds of schemas that take much work, each as a function of its size in bytes.
inline std::vector<std::pair<std::string, std::function<std::string(std::size_t)>>> large_schemas() {
  const auto letters = [](std::size_t count) { return std::string(count, 'x'); };
  // Puts as many items as fit between `head` and `tail`.
  const auto list = [](const std::string& head, const std::string& tail, auto item) {
    return [=](std::size_t bytes) {
      std::string text = head;
      for (std::size_t i = 0;; ++i) {
        const std::string next = (i > 0 ? "," : "") + item(i);
        if (text.size() + next.size() + tail.size() > bytes) return text + tail;
        text += next;
      }
    };
  };
  const auto quoted = [](std::size_t i) { return "\"" + std::to_string(i) + "\""; };
  return {
      {"one constant", [=](std::size_t bytes) { return "{\"const\":\"" + letters(bytes - 12) + "\"}"; }},
      {"two values that end differently",
       [=](std::size_t bytes) {
         const auto half = letters(bytes / 2 - 10);
         return "{\"enum\":[\"" + half + "a\",\"" + half + "b\"]}";
       }},
      {"one name",
       [=](std::size_t bytes) { return "{\"properties\":{\"" + letters(bytes - 32) + "\":{\"type\":\"null\"}}}"; }},
      {"many values", list("{\"enum\":[", "]}", quoted)},
      {"many names", list("{\"properties\":{", "}}", [=](std::size_t i) { return quoted(i) + ":{}"; })},
      {"long names that begin alike",
       list("{\"properties\":{", "}}",
            [=](std::size_t i) { return "\"" + letters(100) + std::to_string(i) + "\":{\"type\":\"integer\"}"; })},
      {"nested values",
       list("{\"enum\":[", "]}",
            [](std::size_t i) { return std::string(50, '[') + std::to_string(i) + std::string(50, ']'); })},
      {"an expression of one text",
       [=](std::size_t bytes) {
         return "{\"pattern\":\"^" + letters(std::min<std::size_t>(bytes, 1000) - 15) + "$\"}" +
                std::string(bytes - std::min<std::size_t>(bytes, 1000), ' ');
       }},
      {"an array of one value without blanks",
       [=](std::size_t bytes) {
         const std::string schema = R"({"type":"array","redline:blanks":0,"items":{"const":1},"minItems":100000})";
         return schema + std::string(bytes - schema.size(), ' ');
       }},
      {"references to one part", list("{\"$defs\":{\"a\":{\"type\":\"null\"}},\"properties\":{", "}}",
                                      [=](std::size_t i) { return quoted(i) + ":{\"$ref\":\"#/$defs/a\"}"; })},
  };
}

/// A chain of parts, each of which needs the one before it. They are declared in an order that is bad for an algorithm
/// that recomputes all of them repeatedly.
inline std::string chained_schema(std::size_t links) {
  std::string properties = R"("p0":{"$ref":"#/$defs/0"})", definitions = R"("0":{"type":"null"})";
  for (std::size_t i = 1; i < links; ++i) {
    const auto name = std::to_string(i);
    properties += ",\"p" + name + "\":{\"$ref\":\"#/$defs/" + name + "\"}";
    definitions +=
        ",\"" + name + R"(":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/)" + std::to_string(i - 1) + "\"}}";
  }
  return "{\"properties\":{" + properties + "},\"$defs\":{" + definitions + "}}";
}

/// Random schemas: values and names that begin alike, members that are required or too deep to fit, bounds, and cyclic
/// references. Many are refused.
class schema_source {
 public:
  using json = nlohmann::ordered_json;

  explicit schema_source(unsigned seed) : random_(seed) {}

  std::string next() {
    json schema = part(3);
    if (!schema.is_object()) schema = json::object();
    for (std::size_t i = 0; i < 4; ++i) schema["$defs"][std::to_string(i)] = part(2);
    if (below(2) == 0) schema["redline:blanks"] = below(3);
    if (below(4) == 0) schema["redline:member_order"] = "any";
    return schema.dump();
  }

  std::size_t below(std::size_t end) { return random_() % end; }

 private:
  std::string word() {
    static constexpr const char* parts[] = {"a", "b", "ab", "\"", "\\", "\xc3\xa9", "the_name_begins_like_others_",
                                            "0", "\n"};
    std::string text;
    for (std::size_t count = below(5); count > 0; --count) text += parts[below(std::size(parts))];
    if (below(20) == 0) text += std::string(below(700), 'a');
    return text;
  }

  /// A pattern, mostly with little choice, and with characters that JSON escapes.
  std::string pattern() {
    static constexpr const char* parts[] = {"a",    "bc",      "\"", R"(\\)",    R"(\n)", "\xc3\xa9",
                                            "[xy]", "(ab|cd)", "z?", R"(\t{3})", "1{2,4}"};
    std::string text = "^";
    for (std::size_t count = below(8); count > 0; --count) text += parts[below(std::size(parts))];
    return text + "$";
  }

  json value(std::size_t depth) {
    switch (below(depth > 0 ? 6 : 4)) {
      case 0:
        return below(200);
      case 1:
        return word();
      case 2:
        return nullptr;
      case 3:
        return static_cast<double>(below(100)) / 8;
      case 4: {
        json list = json::array();
        for (std::size_t count = below(4); count > 0; --count) list.push_back(value(depth - 1));
        return list;
      }
      default: {
        json object = json::object();
        for (std::size_t count = below(4); count > 0; --count) object[word()] = value(depth - 1);
        return object;
      }
    }
  }

  json part(std::size_t depth) {
    if (below(12) == 0) return {{"$ref", below(3) == 0 ? "#" : "#/$defs/" + std::to_string(below(4))}};
    json schema = json::object();
    switch (below(depth > 0 ? 13 : 8)) {
      case 0:
        schema["const"] = value(2);
        break;
      case 1:
        for (std::size_t count = 1 + below(40); count > 0; --count) schema["enum"].push_back(word());
        break;
      case 2:
        for (std::size_t count = 1 + below(40); count > 0; --count) schema["enum"].push_back(value(1));
        break;
      case 3: {
        const auto low = static_cast<int>(below(300)) - 100;
        schema = {{"type", "integer"}, {"minimum", low}, {"maximum", low + static_cast<int>(below(20))}};
        break;
      }
      case 4:
        schema = {{"type", "string"}, {"maxLength", below(6)}};
        break;
      case 5:
        schema["type"] = {"null", "integer", "string"};
        break;
      case 6:
        break;
      case 7:
        schema = {{"type", "string"}, {"pattern", pattern()}};
        break;
      case 8:
        schema = {{"type", "array"}, {"items", part(depth - 1)}, {"minItems", below(3)}, {"maxItems", 2 + below(3)}};
        break;
      case 9:
        for (std::size_t count = 1 + below(3); count > 0; --count) schema["anyOf"].push_back(part(depth - 1));
        break;
      default:
        schema["properties"] = json::object();
        schema["required"] = json::array();
        for (std::size_t count = below(below(4) > 0 ? 6 : 60); count > 0; --count) {
          const auto name = word();
          if (!schema["properties"].contains(name) && below(5) == 0) schema["required"].push_back(name);
          schema["properties"][name] = part(depth - 1);
        }
    }
    return schema;
  }

  std::mt19937 random_;
};

}  // namespace redline::test
