#include "runtime/grammar/schema/schema_rules.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/base/utf8.hpp"
#include "runtime/grammar/schema/schema_clauses.hpp"
#include "runtime/grammar/syntax/part_builders.hpp"

namespace redline::grammar {
namespace {

constexpr std::size_t rules_max = 50'000;
constexpr std::size_t parts_max = 300'000;          // about 50 MB while the rules are compiled
constexpr std::size_t parts_of_number = 100;        // about
constexpr std::uint32_t unrolled_max = 1000;        // items or members that are counted, each as a rule
constexpr std::size_t patterns_max = 6;             // of member names: every subset of them is a kind of names
constexpr std::size_t spaced_max = 16;              // listed values; there is no whitespace in those of longer lists
constexpr std::uint32_t name_states_max = 1 << 12;  // of the expression for one kind of names

/// A string as JSON text without its quotes. Each character has one spelling.
std::string inside_quotes(const std::string& text) {
  const std::string quoted = json(text).dump();
  return quoted.substr(1, quoted.size() - 2);
}

part plain_characters() { return characters(tidy({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}, true)); }
part hex(char32_t from = '0', char32_t to = 'f') {
  if (to <= '9') return characters({{from, to}});
  return characters({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
}
/// \uXXXX, or two of them for a character beyond U+FFFF: no surrogate is alone.
part numbered_escape() {
  const part d_or_D = characters({{'D', 'D'}, {'d', 'd'}});
  const part high = characters({{'8', '9'}, {'A', 'B'}, {'a', 'b'}}), low = characters({{'C', 'F'}, {'c', 'f'}});
  return choice(
      {sequence(characters({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}}), repeat(hex(), 3, 3)),
       sequence(d_or_D, hex('0', '7'), repeat(hex(), 2, 2)),
       sequence(d_or_D, high, repeat(hex(), 2, 2), literal("\\u"), d_or_D, low, repeat(hex(), 2, 2))});
}
part string_character() {
  return choice(
      plain_characters(),
      sequence(
          literal("\\"),
          choice(
              characters(
                  {{'"', '"'}, {'/', '/'}, {'\\', '\\'}, {'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}}),
              sequence(literal("u"), numbered_escape()))));
}

class writer {
 public:
  writer(const json& document, const std::vector<const json*>& parts, const schema_options& options, step_count& steps)
      : document_(document), reader_(document_, steps), parts_(parts), options_(options) {
    for (const json* one : parts) add_rule(document_.path_of(*one));
    const auto blanks_max = options.blanks_max;
    blank_ = blanks_max == 0
                 ? literal("")
                 : repeat(blanks_max == 1 ? literal(" ") : characters({{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}}), 0,
                          blanks_max);
    if (blanks_max > 1) {
      const auto rule = add_rule("whitespace");
      rules_[rule].right = std::exchange(blank_, call(rule));
    }
  }

  result<schema_rules> run() {
    std::vector<std::vector<written_element>> elements(options_.elements ? parts_.size() : 0);
    for (std::size_t i = 0; i < parts_.size() && !reader_.why(); ++i) {
      part right = options_.elements ? elements_of(*parts_[i], elements[i]) : call(rule_of({{parts_[i]}}));
      rules_[i].right = std::move(right);
    }
    for (std::size_t i = 0; i < open_.size() && !reader_.why(); ++i) {
      const auto [rule, terms] = open_[i];
      part right = value(terms);
      rules_[rule].right = std::move(right);
    }
    if (reader_.why()) return *reader_.why();
    return schema_rules{{.rules = std::move(rules_), .root = 0, .subject = "schema"}, std::move(elements)};
  }

 private:
  using texts_pointer = std::shared_ptr<const regex_dfa>;

  /// Counts parts of rules before they are made, because clauses may share what they say but not its parts.
  void grow(std::size_t parts) {
    parts_count_ += parts;
    if (parts_count_ > parts_max) reader_.refuse({}, "", "its alternatives together are too large to be written out");
    (void)reader_.spend(parts);
  }
  std::uint32_t add_rule(std::string name) {
    (void)reader_.spend(1);
    if (rules_.size() >= rules_max)
      reader_.refuse({}, "", "it takes more than " + std::to_string(rules_max) + " rules");
    rules_.push_back({.name = std::move(name), .is_written = true});
    return static_cast<std::uint32_t>(rules_.size() - 1);
  }
  /// The rule of the values that match all the terms, which is written later if it is new.
  std::uint32_t rule_of(schema_terms terms) {
    std::erase_if(terms, [](const schema_term& t) {
      return !t.is_negated && (*t.schema == true || (t.schema->is_object() && t.schema->empty()));
    });
    const auto [known, is_new] = known_.try_emplace(terms, 0);
    std::uint32_t* alike = is_new && terms.size() == 1 ? same_values(terms.front()) : nullptr;
    if (alike != nullptr && *alike != 0) {
      known->second = *alike;
    } else if (is_new) {
      known->second = add_rule(terms.empty() ? "any value" : document_.path_of(*terms.front().schema));
      if (alike != nullptr) *alike = known->second;
      open_.emplace_back(known->second, std::move(terms));
    }
    return known->second;
  }
  /// The rule of all schemas that say the same of numbers, strings and listed values, and nothing of others; null for
  /// other schemas.
  std::uint32_t* same_values(const schema_term& one) {
    if (one.is_negated || !one.schema->is_object()) return nullptr;
    std::string text;
    for (const auto& [keyword, value] : one.schema->items()) {
      if (!asserts(keyword)) continue;
      static constexpr std::string_view plain[] = {"type",      "enum",      "const",   "minimum", "maximum",
                                                   "minLength", "maxLength", "pattern", "format"};
      if (std::ranges::find(plain, keyword) == std::end(plain)) return nullptr;
      text += keyword + value.dump(-1, ' ', false, json::error_handler_t::replace);
      if (text.size() > 256) return nullptr;
    }
    return &alike_[text];
  }
  /// A rule that is shared by all that use it. make: returns its right side.
  template<class Make>
  part shared(std::uint32_t& rule, const char* name, Make make) {
    if (rule == 0) {
      rule = add_rule(name);
      part right = make();
      rules_[rule].right = std::move(right);
    }
    return call(rule);
  }

  part value(const schema_terms& terms) {
    std::vector<part> ways;
    for (auto& c : reader_.expand(terms)) {
      if (reader_.why()) break;
      if (c.values) {
        const bool is_spaced = c.values->size() <= spaced_max;
        for (const json* v : *c.values) ways.push_back(is_spaced ? given(*v) : literal(v->dump()));
        continue;
      }
      static const json nowhere;
      const json& where = terms.empty() ? nowhere : *terms.front().schema;
      if ((c.types & null_values) != 0 && !is_excluded(c, nullptr)) ways.push_back(literal("null"));
      for (const bool b : {false, true}) {
        if ((c.types & boolean_values) != 0 && !is_excluded(c, b)) ways.push_back(literal(b ? "true" : "false"));
      }
      if ((c.types & number_values) != 0) ways.push_back(number(c, where));
      if ((c.types & string_values) != 0) ways.push_back(sequence(literal("\""), text(c, where), literal("\"")));
      if ((c.types & array_values) != 0) ways.push_back(array(c, where));
      if ((c.types & object_values) != 0) ways.push_back(object(c, where));
    }
    return choice(std::move(ways));
  }

  static bool is_excluded(const schema_clause& c, const json& value) {
    return std::ranges::any_of(c.excluded, [&](const json* x) { return *x == value; });
  }
  bool excludes(const schema_clause& c, std::uint32_t types) const {
    return std::ranges::any_of(c.excluded, [&](const json* x) { return (type_of_value(*x) & types) != 0; });
  }

  /// One value. Whitespace may stand between its tokens.
  part given(const json& v) {
    grow(7);
    if (reader_.why()) return {};
    if (v.empty() || !v.is_structured()) return literal(v.dump());
    const bool is_object = v.is_object();
    std::vector<part> parts{literal(is_object ? "{" : "["), blank_};
    bool is_first = true;
    for (const auto& [name, item] : v.items()) {
      if (!is_first) parts.insert(parts.end(), {literal(","), blank_});
      is_first = false;
      if (is_object) parts.insert(parts.end(), {literal(json(name).dump() + ":"), blank_});
      parts.insert(parts.end(), {given(item), blank_});
    }
    parts.push_back(literal(is_object ? "}" : "]"));
    return sequence(std::move(parts));
  }

  part number(schema_clause& c, const json& where) {
    if (excludes(c, number_values)) return new_number(c, where);
    const auto [known, is_new] = numbers_.try_emplace({c.types & number_values, c.numbers}, 0);
    return shared(known->second, "number", [&] { return new_number(c, where); });
  }
  part new_number(schema_clause& c, const json& where) {
    grow(parts_of_number * (1 + c.excluded.size()));
    if (reader_.why()) return {};
    const auto kind = (c.types & number_values) == number_values ? number_kind::any
                      : (c.types & whole_values) != 0            ? number_kind::whole
                                                                 : number_kind::fractional;
    if (!excludes(c, number_values)) {
      auto made = numbers_within(c.numbers, kind);
      if (!made) reader_.refuse(where, "", made.error().context);
      return made ? std::move(*made) : part{};
    }
    // The intervals between the excluded numbers.
    std::vector<decimal> cuts;
    for (const json* x : c.excluded) {
      if (x->is_number()) cuts.push_back(decimal::read(*x));
    }
    std::sort(cuts.begin(), cuts.end());
    std::vector<part> ways;
    for (std::size_t i = 0; i <= cuts.size() && !reader_.why(); ++i) {
      auto bounds = c.numbers;
      if (i > 0) bounds.add_low(cuts[i - 1], true);
      if (i < cuts.size()) bounds.add_high(cuts[i], true);
      auto made = numbers_within(bounds, kind);
      if (!made) reader_.refuse(where, "", made.error().context);
      if (made) ways.push_back(std::move(*made));
    }
    return choice(std::move(ways));
  }

  std::uint32_t any_text() {
    (void)shared(any_text_, "any text in one spelling",
                 [this] { return repeat(choice(plain_characters(), short_escape()), 0, UINT32_MAX); });
    return any_text_;
  }

  /// Characters beyond ASCII; a character that needs an escape.
  part wide_character() {
    return shared(wide_character_, "a character beyond ASCII", [] { return characters(tidy({{0, 0x7f}}, true)); });
  }
  static part short_escape() {
    std::vector<code_range> letters;
    for (const char c : std::string_view("\"\\bfnrt"))
      letters.push_back({static_cast<char32_t>(c), static_cast<char32_t>(c)});
    return sequence(literal("\\"), characters(tidy(std::move(letters), false)));
  }
  /// All texts inside quotes but these. Each character has one spelling.
  part texts_but(std::vector<std::string> all) {
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    const auto [known, is_new] = texts_but_.try_emplace(std::move(all), 0);
    return shared(known->second, "other texts", [&] {
      grow(known->first.size());
      return part{.what = part::kind::other_text,
                  .parts = {call(any_text()), wide_character()},
                  .but = std::make_shared<const std::vector<std::string>>(known->first)};
    });
  }

  /// The inside of a string.
  part text(const schema_clause& c, const json& where) {
    std::vector<std::string> but;
    for (const json* x : c.excluded) {
      if (x->is_string()) but.push_back(inside_quotes(x->get<std::string>()));
    }
    const bool has_length = c.length_min > 0 || c.length_max != UINT32_MAX;
    if (c.texts.empty()) {
      if (but.empty() && !has_length)
        return shared(text_, "text", [] { return repeat(string_character(), 0, UINT32_MAX); });
      if (but.empty())
        return shared(counted_[{c.length_min, c.length_max}], "text of a length",
                      [&] { return repeat(string_character(), c.length_min, c.length_max); });
      if (!has_length) return texts_but(std::move(but));
    }
    auto texts = c.texts.empty() ? all_texts() : all_of(c.texts, where);
    if (texts && !but.empty()) texts = without(texts, c.excluded, where);
    return texts ? texts_of(texts, {c.length_min, c.length_max}) : choice();
  }

  /// The texts of an expression, written once.
  part texts_of(const texts_pointer& texts, text_length length = {}, bool is_escaped = true) {
    const bool has_length = length != text_length{};
    return shared(expressions_[{texts, {length.least, length.most}, is_escaped}], "text of an expression",
                  [&] { return has_length ? measured(texts, is_escaped, length) : expression(texts, is_escaped); });
  }
  std::shared_ptr<const regex_dfa> all_texts() {
    if (!all_texts_) {
      auto made = regex_dfa::compile("", {.how = regex_dfa::match::anywhere, .is_json = true});
      if (made) all_texts_ = std::make_shared<const regex_dfa>(std::move(*made));
    }
    return all_texts_;
  }

  /// The texts that follow all the rules; null if there are none, and after an error.
  std::shared_ptr<const regex_dfa> all_of(const std::vector<schema_clause::text_rule>& rules, const json& where) {
    if (rules.size() == 1 && !rules.front().is_negated) return rules.front().texts;
    std::vector<std::pair<std::shared_ptr<const regex_dfa>, bool>> key;
    for (const auto& one : rules) key.emplace_back(one.texts, one.is_negated);
    const auto [known, is_new] = together_.try_emplace(std::move(key));
    return is_new ? known->second = join(rules, where) : known->second;
  }
  std::shared_ptr<const regex_dfa> join(const std::vector<schema_clause::text_rule>& rules, const json& where) {
    std::shared_ptr<const regex_dfa> all;
    for (const auto& one : rules) {
      if (!one.texts) return nullptr;
      if (!all && !one.is_negated) {
        all = one.texts;
        continue;
      }
      if (!all) all = all_texts();
      auto made = one.is_negated ? all->without(*one.texts, name_states_max, reader_.pattern_steps())
                                 : all->both(*one.texts, name_states_max, reader_.pattern_steps());
      if (!made && made.error().context != regex_dfa::no_text)
        reader_.refuse(where, "", "the patterns together: " + made.error().context);
      if (!made || !reader_.spend(made->states_count())) return nullptr;
      all = std::make_shared<const regex_dfa>(std::move(*made));
    }
    return all;
  }

  /// Those that are not listed, which may be values of other types; null if there are none, and after an error.
  template<class Listed>
  texts_pointer without(const texts_pointer& texts, const Listed& listed, const json& where) {
    // Only texts that the rules allow have to be left out.
    std::string pattern;
    for (const auto& one : listed) {
      const std::string* const text = text_of(one);
      if (text != nullptr && texts->matches(*text)) pattern += (pattern.empty() ? "" : "|") + quoted_for_pattern(*text);
    }
    if (pattern.empty()) return texts;
    auto& steps = reader_.pattern_steps();
    const auto these = regex_dfa::compile("(" + pattern + ")", {.states_max = name_states_max}, steps);
    auto made = these ? texts->without(*these, name_states_max, steps) : result<regex_dfa>(these.error());
    if (!made && made.error().context != regex_dfa::no_text)
      reader_.refuse(where, "", "the excluded texts beside the patterns: " + made.error().context);
    return made ? std::make_shared<const regex_dfa>(std::move(*made)) : nullptr;
  }
  static const std::string* text_of(const std::string& text) { return &text; }
  static const std::string* text_of(const json* value) { return value->get_ptr<const std::string*>(); }
  static std::string quoted_for_pattern(const std::string& text) {
    std::string out;
    for (const char c : text) {
      if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
    return out;
  }

  // Arrays.

  part array(const schema_clause& c, const json& where) {
    std::size_t prefix = 0;
    for (const json* s : c.arrays) prefix = std::max(prefix, prefix_of(*s).size());
    if (c.is_unique && c.items_max > 1) return unique_items(c, prefix, where);
    if (!c.contains.empty()) return containing(c, prefix, where);
    const auto item = [&](std::size_t i) { return sequence(call(rule_of(item_terms(c, i))), blank_); };
    const part comma = sequence(literal(","), blank_);
    // What follows the first `prefix` items: a comma and an item, as often as wanted.
    const auto least = c.items_min > prefix ? c.items_min - static_cast<std::uint32_t>(prefix) : 0;
    const auto most = c.items_max == UINT32_MAX ? UINT32_MAX
                      : c.items_max > prefix    ? c.items_max - static_cast<std::uint32_t>(prefix)
                                                : 0;
    part items = literal("");
    if (prefix == 0) {
      if (most == 0) return sequence(literal("["), blank_, literal("]"));
      const auto rest_most = most == UINT32_MAX ? most : most - 1;
      items = sequence(item(0), repeat(sequence(comma, item(0)), least > 0 ? least - 1 : 0, rest_most));
      if (least == 0) items = optional_part(std::move(items));
    } else {
      if (most > 0) items = repeat(sequence(comma, item(prefix)), least, most);
      for (std::size_t i = prefix; i-- > 0;) {
        if (i >= c.items_max) {
          items = literal("");
          continue;
        }
        items = sequence(i > 0 ? comma : literal(""), item(i), std::move(items));
        if (i >= c.items_min) items = optional_part(std::move(items));
      }
    }
    return sequence(literal("["), blank_, std::move(items), literal("]"));
  }
  static const json& prefix_of(const json& schema) {
    static const json none = json::array();
    const auto prefix = schema.find("prefixItems");
    if (prefix != schema.end() && prefix->is_array()) return *prefix;
    const auto items = schema.find("items");
    return items != schema.end() && items->is_array() ? *items : none;
  }
  static schema_terms item_terms(const schema_clause& c, std::size_t i) {
    schema_terms terms = c.every_item;
    for (const json* s : c.arrays) {
      const json& prefix = prefix_of(*s);
      const auto items = s->find("items");
      const bool is_list = items != s->end() && items->is_array();
      const auto rest = is_list ? s->find("additionalItems") : items;
      if (i < prefix.size())
        add_term(terms, {&prefix[i]});
      else if (rest != s->end())
        add_term(terms, {&*rest});
    }
    for (const auto& rest : c.rests) {
      if (rest.is_of_items && c.leaves_item(rest, i)) add_term(terms, rest.what);
    }
    return terms;
  }
  // Items of which each is there once, in any order.

  /// All values that match the terms, each once; nothing if they are not few.
  std::optional<std::vector<json>> listed_values(const schema_terms& terms) {
    std::vector<json> out;
    const auto add = [&](const json& v) {
      (void)reader_.spend(1 + out.size());
      if (std::ranges::find(out, v) == out.end()) out.push_back(v);
    };
    for (const auto& c : reader_.expand(terms)) {
      std::vector<json> all;
      if (c.values) {
        for (const json* v : *c.values) all.push_back(*v);
      } else {
        if ((c.types & ~(null_values | boolean_values | whole_values)) != 0) return std::nullopt;
        if ((c.types & null_values) != 0) all.emplace_back(nullptr);
        if ((c.types & boolean_values) != 0) all.insert(all.end(), {false, true});
        if ((c.types & whole_values) != 0) {
          const auto wholes = c.numbers.wholes(selection_rule::any_order_max);
          if (!wholes) return std::nullopt;
          all.insert(all.end(), wholes->begin(), wholes->end());
        }
      }
      for (const auto& v : all) {
        if (!is_excluded(c, v)) add(v);
      }
      if (out.size() > selection_rule::any_order_max) return std::nullopt;
    }
    return out;
  }
  part unique_items(const schema_clause& c, std::size_t prefix, const json& where) {
    const auto values = prefix == 0 && c.contains.empty() ? listed_values(item_terms(c, 0)) : std::nullopt;
    if (reader_.why()) return {};
    if (!values) {
      reader_.refuse(
          where, "uniqueItems",
          "needs items of at most " + std::to_string(selection_rule::any_order_max) +
              " values that are listed (enum), without 'contains' and lists of their schemas, or maxItems 1");
      return {};
    }
    auto rule = std::make_shared<selection_rule>();
    rule->in_order = rule->has_parts = false;
    rule->least = c.items_min;
    rule->most = std::min(c.items_max, static_cast<std::uint32_t>(values->size()));
    if (rule->least > rule->most) return choice();
    for (const auto& v : *values) rule->keys.push_back(v.dump());
    grow(4 * values->size());
    return sequence(
        literal("["), blank_,
        part{.what = part::kind::selection, .parts = {sequence(literal(","), blank_)}, .selection = std::move(rule)},
        blank_, literal("]"));
  }

  /// Items of which some must be there, with a rule for each number of items and of those so far.
  part containing(const schema_clause& c, std::size_t prefix, const json& where) {
    const auto& what = c.contains.front();
    // The last numbers stand for all that are larger, unless no more may follow.
    const std::size_t items_max =
        std::max<std::size_t>({1, prefix, c.items_max == UINT32_MAX ? c.items_min : c.items_max});
    const std::size_t found_max = what.most == UINT32_MAX ? what.least : what.most;
    const std::size_t count = (items_max + 1) * (found_max + 1);
    if (c.contains.size() > 1 || items_max > unrolled_max || found_max > unrolled_max || count > 4 * unrolled_max) {
      reader_.refuse(where, "", "'contains' is supported once, and with fewer items that are counted");
      return {};
    }
    grow(12 * count);
    if (reader_.why()) return {};
    std::vector<std::uint32_t> rules;
    for (std::size_t i = 0; i < count; ++i) rules.push_back(add_rule("items"));
    const part comma = sequence(literal(","), blank_);
    for (std::size_t items = 0; items <= items_max && !reader_.why(); ++items) {
      const schema_terms any = item_terms(c, items);
      schema_terms inside = any, outside = any;
      add_term(inside, what.what);
      if (what.most != UINT32_MAX) add_term(outside, {what.what.schema, !what.what.is_negated});
      const part wanted = sequence(items > 0 ? comma : literal(""), call(rule_of(std::move(inside))), blank_);
      const part other = sequence(items > 0 ? comma : literal(""), call(rule_of(std::move(outside))), blank_);
      const std::size_t then = std::min(items + 1, items_max);
      for (std::size_t found = 0; found <= found_max; ++found) {
        const auto after = [&](std::size_t now) { return call(rules[then * (found_max + 1) + now]); };
        std::vector<part> ways;
        if (items >= c.items_min && found >= what.least) ways.push_back(literal(""));
        const bool may_go_on = items < c.items_max;
        const bool may_be_wanted = found < found_max;
        if (may_go_on) ways.push_back(sequence(other, after(found)));
        if (may_go_on && may_be_wanted) ways.push_back(sequence(wanted, after(found + 1)));
        rules_[rules[items * (found_max + 1) + found]].right = choice(std::move(ways));
      }
    }
    if (what.least > what.most) return choice();
    return sequence(literal("["), blank_, call(rules[0]), literal("]"));
  }

  // Objects.

  struct member {
    std::string key;  // its name and colon
    part value;
    bool is_required = false;
    [[nodiscard]] part text() const { return sequence(literal(key), value); }
  };
  struct named_member {
    std::string name;
    schema_terms terms;
    bool is_required = false;
  };

  /// The members that the clause names and allows. Nothing if one is required that is not allowed, and after an error.
  std::optional<std::vector<named_member>> named_members(const schema_clause& c, std::set<std::string>& known) {
    std::vector<std::string> names;
    const auto add_name = [&](const std::string& name) {
      (void)reader_.spend(1);
      if (known.insert(name).second) names.push_back(name);
    };
    for (const json* s : c.objects) {
      const auto properties = s->find("properties");
      if (properties == s->end()) continue;
      for (const auto& [name, unused] : properties->items()) add_name(name);
    }
    for (const auto& name : c.required) add_name(name);
    for (const auto& [name, unused] : c.members) add_name(name);
    for (const auto& name : c.forbidden) known.insert(name);
    std::vector<named_member> members;
    for (const auto& name : names) {
      const bool is_required = c.requires_member(name);
      auto terms = member_terms(c, name);
      const bool is_forbidden = c.forbidden.contains(name) || !terms || is_never(*terms);
      if (reader_.why() || (is_forbidden && is_required)) return std::nullopt;
      if (!is_forbidden) members.push_back({name, std::move(*terms), is_required});
    }
    return members;
  }
  static bool is_counted(const schema_clause& c) {
    return c.members_min > c.required.size() || c.members_max != UINT32_MAX;
  }

  part object(const schema_clause& c, const json& where) {
    std::set<std::string> known;
    auto named = named_members(c, known);
    if (!named) return choice();
    std::vector<member> members;
    for (auto& [name, terms, is_required] : *named)
      members.push_back(
          {json(name).dump() + ":", sequence(blank_, call(rule_of(std::move(terms))), blank_), is_required});
    const bool is_closed = options_.is_closed && !members.empty() && std::ranges::none_of(c.objects, [](const json* s) {
                             return s->contains("additionalProperties") || s->contains("patternProperties");
                           });
    const auto extra = is_closed ? std::nullopt : other_members(c, known, where);
    if (reader_.why()) return {};
    part inside = is_counted(c) ? counted_members(c, members, extra, where) : listed_members(std::move(members), extra);
    return sequence(literal("{"), blank_, std::move(inside), literal("}"));
  }
  static bool is_never(const schema_terms& terms) {
    return std::ranges::any_of(
        terms, [](const schema_term& t) { return t.schema->is_boolean() && t.schema->get<bool>() == t.is_negated; });
  }

  /// What holds for a member of this name; nothing if the name is not allowed.
  std::optional<schema_terms> member_terms(const schema_clause& c, const std::string& name) {
    schema_terms terms;
    if (const auto besides = c.members.find(name); besides != c.members.end()) terms = besides->second;
    for (const json* s : c.objects) {
      bool is_known = false;
      if (const auto properties = s->find("properties"); properties != s->end()) {
        if (const auto own = properties->find(name); own != properties->end()) {
          add_term(terms, {&*own});
          is_known = true;
        }
      }
      if (const auto patterns = s->find("patternProperties"); patterns != s->end()) {
        for (const auto& [pattern, schema] : patterns->items()) {
          const auto texts = reader_.find_texts(pattern, *s, "patternProperties");
          if (!texts) return std::nullopt;
          if (!texts->matches(name)) continue;
          add_term(terms, {&schema});
          is_known = true;
        }
      }
      if (const auto rest = s->find("additionalProperties"); rest != s->end() && !is_known) add_term(terms, {&*rest});
      if (const auto of_names = s->find("propertyNames"); of_names != s->end()) {
        if (!reader_.hold({{&*of_names}}, json(name))) return std::nullopt;
      }
    }
    const auto is_named = [&](const json& members) { return members.contains(name); };
    const auto matches = [&](const std::string& pattern) {
      const auto texts = reader_.find_texts(pattern, *c.objects.front(), "patternProperties");
      return texts && texts->matches(name);
    };
    for (const auto& rest : c.rests) {
      if (!rest.is_of_items && c.leaves_member(rest, is_named, matches)) add_term(terms, rest.what);
    }
    return terms;
  }

  /// A member whose name is none of these; nothing if there are no others.
  std::optional<part> other_members(const schema_clause& c, const std::set<std::string>& known, const json& where) {
    std::map<std::string, std::shared_ptr<const regex_dfa>> patterns;
    rules_of_names every_name;
    for (const json* s : c.objects) {
      if (const auto own = s->find("patternProperties"); own != s->end()) {
        for (const auto& [pattern, schema] : own->items())
          patterns[pattern] = reader_.find_texts(pattern, *s, "patternProperties");
      }
      if (const auto of_names = s->find("propertyNames"); of_names != s->end()) {
        if (!add_name_rules(every_name, *of_names, where)) return std::nullopt;
      }
    }
    if (reader_.why()) return std::nullopt;
    if (patterns.size() > patterns_max) {
      reader_.refuse(where, "",
                     "more than " + std::to_string(patterns_max) + " patterns of names hold at the same time");
      return std::nullopt;
    }
    std::vector<part> ways;
    for (std::size_t subset = 0; subset < std::size_t{1} << patterns.size(); ++subset) {
      schema_terms terms;
      auto rules = every_name;
      for (const json* s : c.objects) {
        bool is_known = false;
        const auto own = s->find("patternProperties");
        std::size_t i = 0;
        for (const auto& [pattern, texts] : patterns) {
          const bool is_in = (subset >> i++ & 1) != 0;
          if (!is_in || own == s->end()) continue;
          if (const auto schema = own->find(pattern); schema != own->end()) {
            add_term(terms, {&*schema});
            is_known = true;
          }
        }
        if (const auto rest = s->find("additionalProperties"); rest != s->end() && !is_known) add_term(terms, {&*rest});
      }
      const auto matches = [&](const std::string& pattern) {
        const auto at = std::distance(patterns.begin(), patterns.find(pattern));
        return (subset >> at & 1) != 0;
      };
      for (const auto& rest : c.rests) {
        const bool is_left = c.leaves_member(
            rest, [](const json&) { return false; }, matches);
        if (!rest.is_of_items && is_left) add_term(terms, rest.what);
      }
      if (is_never(terms)) continue;
      std::size_t i = 0;
      for (const auto& [pattern, texts] : patterns) rules.texts.push_back({texts, (subset >> i++ & 1) == 0});
      auto name = name_but(rules, known, where);
      if (reader_.why()) return std::nullopt;
      if (!name) continue;
      ways.push_back(sequence(std::move(*name), literal("\":"), blank_, call(rule_of(std::move(terms))), blank_));
    }
    if (ways.empty()) return std::nullopt;
    const auto rule = add_rule("other members");
    rules_[rule].right = choice(std::move(ways));
    return sequence(literal("\""), call(rule));
  }
  /// What holds for every name.
  struct rules_of_names {
    std::vector<schema_clause::text_rule> texts;
    text_length length;
  };
  /// Adds those of a schema of names. Returns false if no name matches, or after an error.
  bool add_name_rules(rules_of_names& to, const json& schema, const json& where) {
    auto clauses = reader_.expand({{&schema}});
    std::erase_if(clauses, [](const schema_clause& c) { return (c.types & string_values) == 0; });
    if (clauses.empty()) return false;
    const auto& c = clauses.front();
    if (clauses.size() > 1 || !c.excluded.empty()) {
      reader_.refuse(where, "", "'propertyNames' is supported with one list, pattern, format or length");
      return false;
    }
    to.texts.insert(to.texts.end(), c.texts.begin(), c.texts.end());
    to.length.least = std::max(to.length.least, c.length_min);
    to.length.most = std::min(to.length.most, c.length_max);
    if (!c.values) return true;
    std::string pattern;
    for (const json* v : *c.values) {
      if (const auto* const text = text_of(v)) pattern += "|" + quoted_for_pattern(*text);
    }
    if (pattern.empty()) return false;
    auto made = regex_dfa::compile("(" + pattern.substr(1) + ")", {.is_json = true}, reader_.pattern_steps());
    if (!made) reader_.refuse(where, "", "'propertyNames': " + made.error().context);
    if (made) to.texts.push_back({std::make_shared<const regex_dfa>(std::move(*made)), false});
    return made.has_value();
  }
  /// The inside of names that follow the rules, without these; nothing if there are none.
  std::optional<part> name_but(const rules_of_names& rules, const std::set<std::string>& known, const json& where) {
    const auto& [all, length] = rules;
    if (all.empty() && length == text_length{}) {
      std::vector<std::string> but;
      for (const auto& name : known) but.push_back(inside_quotes(name));
      return texts_but(std::move(but));
    }
    auto texts = all.empty() ? all_texts() : all_of(all, where);
    if (texts) texts = without(texts, known, where);
    if (!texts) return std::nullopt;
    return texts_of(texts, length);
  }

  part listed_members(std::vector<member> members, std::optional<part> extra) {
    if (members.empty() && !extra) return literal("");
    grow(8 * (1 + members.size()));
    auto rule = std::make_shared<selection_rule>();
    part out{.what = part::kind::selection, .parts = {sequence(literal(","), blank_)}};
    for (auto& m : members) {
      rule->keys.push_back(std::move(m.key));
      rule->required.push_back(m.is_required);
      out.parts.push_back(std::move(m.value));
    }
    rule->has_others = extra.has_value();
    rule->in_order = options_.in_order || members.size() > selection_rule::any_order_max;
    if (extra) out.parts.push_back(std::move(*extra));
    out.selection = std::move(rule);
    return out;
  }

  /// The same with a rule for each number of members so far.
  part counted_members(const schema_clause& c, const std::vector<member>& members, const std::optional<part>& extra,
                       const json& where) {
    const auto least = c.members_min;
    const std::uint32_t most =
        !extra ? std::min(c.members_max, static_cast<std::uint32_t>(members.size())) : c.members_max;
    const std::uint32_t counted = most == UINT32_MAX ? least : most;
    if (counted > unrolled_max || (members.size() + 1) * (counted + std::size_t{1}) > 4 * unrolled_max) {
      reader_.refuse(where, "", "'minProperties' and 'maxProperties' are supported for fewer members");
      return {};
    }
    grow(8 * (members.size() + 1) * (counted + std::size_t{1}));
    if (reader_.why()) return {};
    const part comma = sequence(literal(","), blank_);
    // By the number of members so far; the last counts all that are more.
    std::vector<part> after(counted + std::size_t{1});
    for (std::uint32_t n = counted + 1; n-- > 0;) {
      const bool may_end = n >= least, may_go_on = extra && n < most;
      std::vector<part> ways;
      if (may_end) ways.push_back(literal(""));
      if (may_go_on) {
        const bool stays = n == counted;
        if (stays)
          ways.push_back(repeat(sequence(comma, *extra), 1, UINT32_MAX));
        else
          ways.push_back(sequence(n > 0 ? comma : literal(""), *extra, as_rule(after[n + 1])));
      }
      after[n] = choice(std::move(ways));
    }
    for (auto m = members.rbegin(); m != members.rend(); ++m) {
      auto before = after;
      for (auto& one : before) one = as_rule(one);
      for (std::uint32_t n = 0; n <= counted; ++n) {
        const std::uint32_t then = most == UINT32_MAX ? std::min(n + 1, counted) : n + 1;
        std::vector<part> ways;
        if (then <= counted) ways.push_back(sequence(n > 0 ? comma : literal(""), m->text(), before[then]));
        if (!m->is_required) ways.push_back(before[n]);
        after[n] = choice(std::move(ways));
      }
    }
    return after[0];
  }
  part as_rule(const part& p) {
    if (p.what == part::kind::rule) return p;
    const auto rule = add_rule("members");
    rules_[rule].right = p;
    return call(rule);
  }

  // Objects as elements. What a string says stands there without quotes and escapes.

  part elements_of(const json& schema, std::vector<written_element>& written) {
    static const json any_object{{"type", "object"}};
    std::vector<std::vector<named_member>> ways;
    std::map<std::string, bool> is_text;
    for (const auto& c : reader_.expand({{&schema}, {&any_object}})) {
      if (c.values) reader_.refuse(schema, "", "listed objects are not supported in this model's form of calls");
      if (is_counted(c))
        reader_.refuse(schema, "", "counts of members are not supported in this model's form of calls");
      std::set<std::string> known;
      auto members = named_members(c, known);
      if (reader_.why()) return {};
      if (!members) continue;
      for (const auto& m : *members) {
        if (m.name.empty() || m.name.find_first_of("<>\n\r") != std::string::npos) {
          reader_.refuse(schema, "properties",
                         "has the name '" + m.name.substr(0, 64) + "', which this model's form of calls cannot write");
          return {};
        }
        auto& known_as_text = is_text.try_emplace(m.name, false).first->second;
        known_as_text = known_as_text || may_be_text(m.terms);
      }
      ways.push_back(std::move(*members));
    }
    std::vector<part> all;
    for (auto& members : ways) all.push_back(elements(std::move(members), is_text));
    for (const auto& [name, one] : is_text) written.push_back({name, one});
    return choice(std::move(all));
  }
  part elements(std::vector<named_member> members, const std::map<std::string, bool>& is_text) {
    if (members.empty()) return literal("");
    grow(8 * (1 + members.size()));
    const auto& markup = *options_.elements;
    const std::string begin(markup.begin), end = std::string(markup.end) + "\n";
    auto rule = std::make_shared<selection_rule>();
    rule->least = 1;
    part chosen{.what = part::kind::selection, .parts = {literal(end + begin)}};
    bool is_any_required = false;
    for (auto& [name, terms, is_required] : members) {
      rule->keys.push_back(name + std::string(markup.after_name));
      rule->required.push_back(is_required);
      is_any_required = is_any_required || is_required;
      chosen.parts.push_back(call(is_text.at(name) ? raw_texts(std::move(terms)) : rule_of(std::move(terms))));
    }
    chosen.selection = std::move(rule);
    part all = sequence(literal(begin), std::move(chosen), literal(end));
    return is_any_required ? all : optional_part(std::move(all));
  }
  bool may_be_text(const schema_terms& terms) {
    return std::ranges::any_of(reader_.expand(terms), [](const schema_clause& c) {
      if (!c.values) return (c.types & string_values) != 0;
      return std::ranges::any_of(*c.values, [](const json* v) { return v->is_string(); });
    });
  }
  /// The rule of the strings that match the terms.
  std::uint32_t raw_texts(schema_terms terms) {
    if (const auto known = raw_texts_.find(terms); known != raw_texts_.end()) return known->second;
    static const json nowhere;
    const auto rule = add_rule("the text of an element");
    std::vector<part> ways;
    for (const auto& c : reader_.expand(terms)) {
      grow(c.values ? c.values->size() : 1);
      if (c.values) {
        for (const json* v : *c.values) {
          const auto* const text = v->get_ptr<const std::string*>();
          if (text != nullptr && text->find(options_.elements->end) == std::string::npos)
            ways.push_back(literal(*text));
        }
      } else if ((c.types & string_values) != 0) {
        ways.push_back(raw_text(c, terms.empty() ? nowhere : *terms.front().schema));
      }
    }
    rules_[rule].right = choice(std::move(ways));
    raw_texts_.emplace(std::move(terms), rule);
    return rule;
  }
  part raw_text(const schema_clause& c, const json& where) {
    const text_length length{c.length_min, c.length_max};
    const std::string end(options_.elements->end);
    if (c.texts.empty() && !excludes(c, string_values) && length == text_length{}) {
      return shared(raw_text_, "any text of an element", [&] {
        auto made = regex_dfa::bytes_without(end);
        return made ? expression(std::make_shared<const regex_dfa>(std::move(*made)), false) : part{};
      });
    }
    auto& steps = reader_.pattern_steps();
    if (!texts_without_end_) {
      const auto all = regex_dfa::compile("", {.how = regex_dfa::match::anywhere}, steps);
      const auto with_end = regex_dfa::compile(quoted_for_pattern(end), {.how = regex_dfa::match::anywhere}, steps);
      auto made = all && with_end ? all->without(*with_end, name_states_max, steps) : all;
      if (!made) reader_.refuse(where, "", "the texts of elements: " + made.error().context);
      if (!made) return {};
      texts_without_end_ = std::make_shared<const regex_dfa>(std::move(*made));
    }
    auto texts = texts_without_end_;
    if (!c.texts.empty()) {
      const auto asked = all_of(c.texts, where);
      auto made = asked ? asked->both(*texts, name_states_max, steps) : result<regex_dfa>(failure{});
      if (asked && !made && made.error().context != regex_dfa::no_text)
        reader_.refuse(where, "", "the patterns in this model's form of calls: " + made.error().context);
      texts = made ? std::make_shared<const regex_dfa>(std::move(*made)) : nullptr;
    }
    if (texts && excludes(c, string_values)) texts = without(texts, c.excluded, where);
    return texts ? texts_of(texts, length, false) : choice();
  }

  const schema_document document_;
  schema_reader reader_;
  const std::vector<const json*>& parts_;
  const schema_options& options_;
  std::vector<rule> rules_;
  std::size_t parts_count_ = 0;
  std::map<schema_terms, std::uint32_t> known_;
  std::map<std::string, std::uint32_t> alike_;                // see same_values
  std::vector<std::pair<std::uint32_t, schema_terms>> open_;  // rules that are not written yet
  part blank_;
  std::uint32_t text_ = 0, any_text_ = 0, wide_character_ = 0;
  std::map<std::vector<std::string>, std::uint32_t> texts_but_;  // rules by what they leave out
  // Rules and expressions that are used again.
  using length_key = std::pair<std::uint32_t, std::uint32_t>;
  texts_pointer all_texts_, texts_without_end_;
  std::map<length_key, std::uint32_t> counted_;
  std::map<std::pair<std::uint32_t, number_bounds>, std::uint32_t> numbers_;
  std::map<std::tuple<texts_pointer, length_key, bool>, std::uint32_t> expressions_;
  std::map<schema_terms, std::uint32_t> raw_texts_;  // rules of the insides of elements
  std::uint32_t raw_text_ = 0;
  std::map<std::vector<std::pair<texts_pointer, bool>>, texts_pointer> together_;
};

}  // namespace

result<schema_rules> write_schema_rules(const json& document, const std::vector<const json*>& parts,
                                        const schema_options& options, step_count& steps) {
  return writer(document, parts, options, steps).run();
}

}  // namespace redline::grammar
