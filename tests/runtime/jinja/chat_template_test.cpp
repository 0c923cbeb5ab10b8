#include "runtime/jinja/chat_template.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/jinja/value.hpp"
#include "tests/support/test_data.hpp"

namespace redline::jinja {
namespace {

using json = nlohmann::ordered_json;

chat_input input_of(const json& given, std::int64_t now) {
  chat_input input;
  input.messages = given.value("messages", json::array());
  input.add_generation_prompt = given.value("add_generation_prompt", false);
  if (given.contains("bos_token")) input.bos_token = given["bos_token"].get<std::string>();
  if (given.contains("eos_token")) input.eos_token = given["eos_token"].get<std::string>();
  input.variables = given.value("variables", json::object());
  input.now = now;
  return input;
}

result<std::string> render(std::string source, const json& variables = json::object(),
                           const template_limits& limits = {}) {
  REDLINE_TRY_ASSIGN(const chat_template parsed, chat_template::parse(std::move(source), limits));
  chat_input input;
  input.variables = variables;
  return parsed.render(input);
}

std::string rendered(std::string source, const json& variables = json::object()) {
  const auto output = render(std::move(source), variables);
  return output ? *output : "FAILED: " + output.error().context;
}

std::string why(const result<std::string>& r) { return r ? "it rendered: " + *r : r.error().context; }

// -- against Jinja2 (reference/make_chat_vectors.py)

TEST(chat_template, renders_the_corpus_byte_for_byte_as_jinja2_does) {
  const json vectors =
      json::parse(test::read_file(test::source_path("tests/runtime/jinja/reference/chat_vectors.json")));
  const auto now = vectors["now"].get<std::int64_t>();
  std::size_t checked = 0;
  for (const json& one : vectors["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const auto source = vectors["templates"][one["template"].get<std::size_t>()].get<std::string>();
    const chat_input input = input_of(vectors["inputs"][one["input"].get<std::size_t>()], now);
    const std::string wanted = one.value("error", "");
    ++checked;
    const auto parsed = chat_template::parse(source);
    if (wanted == "parse") {
      EXPECT_FALSE(parsed) << "it parsed: " << source;
      continue;
    }
    ASSERT_TRUE(parsed) << parsed.error().context;
    const auto output = parsed->render(input);
    if (wanted.empty()) {
      ASSERT_TRUE(output) << output.error().context;
      EXPECT_EQ(*output, one["output"].get<std::string>());
    } else {
      ASSERT_FALSE(output) << "it rendered: " << *output;
      EXPECT_EQ(output.error().code, wanted == "refused" ? errc::invalid_argument : errc::invalid_template);
      const std::string message = one.value("message", "");
      EXPECT_NE(output.error().context.find(message), std::string::npos) << output.error().context;
    }
  }
  EXPECT_GT(checked, 900u);
}

// -- the public interface

TEST(chat_template, has_chatml_for_models_without_a_template) {
  const auto chatml = chat_template::parse(std::string(chatml_template));
  ASSERT_TRUE(chatml);
  chat_input input;
  input.messages = json::parse(R"([{"role": "user", "content": "Hi"}])");
  EXPECT_EQ(*chatml->render(input), "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  input.add_generation_prompt = false;
  EXPECT_EQ(*chatml->render(input), "<|im_start|>user\nHi<|im_end|>\n");
}

TEST(chat_template, keeps_the_order_of_keys) {
  EXPECT_EQ(rendered("{{ tools | tojson }}", json::parse(R"({"tools": [{"z": 1, "a": {"y": 2, "b": 3}}]})")),
            R"([{"z": 1, "a": {"y": 2, "b": 3}}])");
}

TEST(chat_template, lets_variables_win_over_the_standard_ones) {
  EXPECT_EQ(rendered("{{ add_generation_prompt }}{{ bos_token is defined }}", {{"add_generation_prompt", "mine"}}),
            "mineFalse");
}

TEST(chat_template, tells_the_line_and_name_of_what_is_not_supported) {
  const auto parse_error = [](std::string source) { return why(render(std::move(source))); };
  EXPECT_EQ(parse_error("a\nb\n{% include 'x' %}"), "chat template, line 3: tag `include` is not supported");
  EXPECT_EQ(parse_error("{{ 1 }}\n{{ x | urlize }}"), "chat template, line 2: filter `urlize` is not supported");
  EXPECT_EQ(parse_error("\n\n{% if true %}{{ x is cromulent }}{% endif %}"),
            "chat template, line 3: test `cromulent` is not supported");
  EXPECT_EQ(parse_error("{{ [1] | map('urlize') }}"), "chat template, line 1: filter `urlize` is not supported");
  EXPECT_EQ(parse_error("{{ [{}] | selectattr('a', 'cromulent') }}"),
            "chat template, line 1: test `cromulent` is not supported");
  EXPECT_EQ(parse_error("{% for x in [] recursive %}{% endfor %}"),
            "chat template, line 1: `recursive` in `{% for %}` is not supported");
  EXPECT_EQ(parse_error("\n{% break %}"), "chat template, line 2: found `{% break %}` outside a loop");
  EXPECT_EQ(
      parse_error("{% if x %}\n\n"),
      "chat template, line 2: expected `{% elif %}` or `{% else %}` or `{% endif %}`, found the end of the template");
  EXPECT_EQ(parse_error("x\n{{ 1 +"),
            "chat template, line 2: expected `}}` at the end of a tag, found the end of the template");
}

// A model is served even if its template names filters of other programs, as long as these are not reached.
TEST(chat_template, fails_by_an_unknown_filter_or_test_only_where_it_is_reached) {
  const std::string source =
      "{% if arguments is string %}{{ arguments | from_json }}{% else %}{{ arguments }}{% endif %}";
  EXPECT_EQ(rendered(source, {{"arguments", 5}}), "5");
  EXPECT_EQ(why(render(source, {{"arguments", "{}"}})), "chat template, line 1: filter `from_json` is not supported");
  EXPECT_EQ(rendered("{{ 1 if true else 2 is cromulent }}{{ [] | map('from_json') | list }}"), "1[]");
}

TEST(chat_template, tells_the_line_where_rendering_failed) {
  EXPECT_EQ(why(render("{% set x = 1 %}\n\n{{ x.y.z }}")), "chat template, line 3: 'int object' has no attribute 'y'");
  EXPECT_EQ(why(render("\n{{ nope.x }}")), "chat template, line 2: 'nope' is undefined");
  EXPECT_EQ(why(render("{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}\n\n{{ m() }}")),
            "chat template, line 2: expected a divisor other than 0");
}

TEST(chat_template, tells_the_name_of_a_method_or_function_that_is_not_supported) {
  EXPECT_EQ(why(render("\n{{ '7'.zfill(3) }}")), "chat template, line 2: method `zfill` of str is not supported");
  EXPECT_EQ(why(render("{{ [1].append(2) }}")), "chat template, line 1: method `append` of list is not supported");
  EXPECT_EQ(why(render("{{ {'pop': 1}.pop('a') }}")), "chat template, line 1: method `pop` of dict is not supported");
  EXPECT_EQ(why(render("{{ cycler(1, 2) }}")), "chat template, line 1: 'cycler' is undefined");
  EXPECT_EQ(why(render("{% for x in [1] %}{{ loop.changed(1) }}{% endfor %}")),
            "chat template, line 1: 'LoopContext object' has no attribute 'changed'");
  EXPECT_EQ(why(render("{{ '%s' % 1 }}")), "chat template, line 1: `%` does not apply to str and int");
}

TEST(chat_template, reports_a_refused_conversation_as_the_callers_mistake) {
  const auto refused = render("{{ raise_exception('Roles must alternate') }}");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(),
            (failure{errc::invalid_argument, "the chat template rejected the conversation: Roles must alternate"}));
}

TEST(chat_template, refuses_input_of_the_wrong_shape) {
  const auto parsed = chat_template::parse("x");
  chat_input input;
  input.messages = "text";
  EXPECT_EQ(parsed->render(input).error().code, errc::invalid_argument);
  input = {};
  input.variables = json::array();
  EXPECT_EQ(parsed->render(input).error().code, errc::invalid_argument);
}

TEST(chat_template, offers_no_way_out_of_its_input) {
  for (const char* source : {"{{ ''.__class__ }}", "{{ messages.__class__ }}", "{{ ''['__class__'] }}",
                             "{{ range.__globals__ }}", "{{ namespace.__init__ }}", "{{ self }}", "{{ config }}"}) {
    EXPECT_EQ(rendered(source), "") << source;
  }
}

// -- limits

template_limits small_limits() {
  template_limits limits;
  limits.steps_max = 200'000;
  limits.memory_bytes_max = 4 << 20;
  return limits;
}

TEST(chat_template, ends_a_template_that_works_or_grows_without_end) {
  const std::pair<const char*, const char*> bombs[] = {
      {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "steps"},
      {"{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "nested expressions"},
      {"{% macro m() %}{% call m() %}{% endcall %}{{ caller }}{% endmacro %}{{ m() }}", "nested expressions"},
      {"{% set ns = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
       "bytes"},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
       "bytes|steps"},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
       "bytes|steps"},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s == "
       "ns.s }}{{ ns.s | tojson }}",
       "bytes|steps"},
      {"{% set ns = namespace(s=[]) %}{% for i in range(9999) %}{% set ns.s = [ns.s] %}{% endfor %}", "levels deep"},
      {"{{ 'a' * 9223372036854775807 }}", "bytes"},
      {"{{ [1] * 9223372036854775807 }}", "bytes|steps"},
      {"{{ 'x' | indent(9223372036854775807) }}", "bytes"},
      {"{{ [1, [2]] | tojson(indent=9223372036854775807) }}", "bytes|steps"},
      {"{{ ('a' * 100000).replace('', 'b' * 100000) }}", "bytes|steps"},
      {"{% set s = 'ab' * 50000 %}{% for i in range(99999) %}{% if 'b' * 9 in s %}{% endif %}{% endfor %}", "steps"},
      {"{% set s = 'a ' * 50000 %}{% for i in range(99999) %}{% set x = s.split() %}{% endfor %}", "bytes|steps"},
      {"{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% macro m() %}{% endmacro %}{% endfor %}",
       "bytes|steps"},
      {"{% for i in range(99999) %}{% set x = namespace(a=i) %}{% endfor %}", "bytes|steps"},
      {"{{ range(99999999) }}", "range"},
      {"{{ 9223372036854775807 + 1 }}", "64 bits"},
      {"{{ -9223372036854775807 - 2 }}", "64 bits"},
      {"{{ 10 ** 100 }}", "64 bits"},
      {"{{ (-9223372036854775807 - 1) // -1 }}", "64 bits"},
  };
  for (const auto& [source, reason] : bombs) {
    const std::string context = why(render(source, json::object(), small_limits()));
    bool expected = false;
    std::string_view reasons = reason;
    while (!reasons.empty()) {
      const std::size_t bar = std::min(reasons.find('|'), reasons.size());
      expected |=
          context.starts_with("chat template, line 1: ") && context.find(reasons.substr(0, bar)) != std::string::npos;
      reasons.remove_prefix(std::min(bar + 1, reasons.size()));
    }
    EXPECT_TRUE(expected) << source << "\n" << context.substr(0, 200);
  }
}

TEST(chat_template, survives_what_tries_to_make_circles_and_chains) {
  // Each of these would leak, or overflow the stack when destroyed, if values owned each other freely.
  for (const char* source : {
           "{% set ns = namespace() %}{% set ns.self = ns %}{% set ns.list = [ns, [ns]] %}ok",
           "{% macro m() %}{% endmacro %}{% set x = m %}{% set ns = namespace(m=m) %}ok",
           "{% set ns = namespace(head=none) %}{% for i in range(3000) %}{% set ns.head = namespace(next=ns.head) %}{% "
           "endfor %}ok",
           "{% set ns = namespace(m=none) %}{% for i in range(3000) %}{% set before = ns.m %}{% for j in [1] %}{% "
           "macro m() %}{{ before }}{% endmacro %}{% set ns.m = m %}{% endfor %}{% endfor %}ok",
           "{% set ns = namespace(l=none) %}{% for i in range(3000) %}{% set before = ns.l %}{% for j in [1] %}{% set "
           "ns.l = loop %}{% endfor %}{% endfor %}ok",
       }) {
    EXPECT_EQ(rendered(source), "ok") << source;
  }
}

TEST(chat_template, says_when_a_loop_is_used_after_its_end) {
  const std::string keep =
      "{% set ns = namespace() %}{% for a in [1] %}{% for i in [1, 2, 3] if i < 3 %}{% if i == 1 %}{% set ns.l = loop "
      "%}{% break %}{% endif %}{% endfor %}{% endfor %}";
  EXPECT_EQ(rendered(keep + "{{ ns.l.index }}"), "1");
  EXPECT_NE(rendered(keep + "{{ ns.l.length }}").find("still running"), std::string::npos);
}

TEST(chat_template, bounds_source_output_and_nesting) {
  template_limits limits;
  limits.source_bytes_max = 10;
  EXPECT_EQ(why(render("12345678901", json::object(), limits)), "chat template: expected at most 10 bytes, found 11");
  limits = {};
  limits.output_bytes_max = 100;
  EXPECT_EQ(render("{{ 'x' * 100 }}", json::object(), limits)->size(), 100u);
  EXPECT_EQ(why(render("{{ 'x' * 101 }}", json::object(), limits)),
            "chat template, line 1: expected at most 100 bytes of output, found more");
  json deep = 1;
  for (int i = 0; i < 200; ++i) deep = json::array({std::move(deep)});
  EXPECT_NE(rendered("{{ deep }}", {{"deep", std::move(deep)}}).find("levels deep"), std::string::npos);
}

/// A template that the parser accepts must render within the promised stack; others must be refused within it.
TEST(chat_template, parses_and_renders_the_deepest_templates_on_256_kib_of_stack) {
#ifdef REDLINE_SANITIZED
  GTEST_SKIP() << "frames are larger under a sanitizer";
#endif
  const auto repeat = [](std::string_view s, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += s;
    return out;
  };
  static std::vector<std::string> sources;
  static std::size_t rendered_count, refused_count;
  sources.clear();
  rendered_count = refused_count = 0;
  for (const int n : {10, 40, 70, 79, 100, 1000, 100000}) {
    sources.push_back("{{ " + repeat("(", n) + "1" + repeat(")", n) + " }}");
    sources.push_back("{{ " + repeat("[", n) + repeat("]", n) + " }}");
    sources.push_back("{{ " + repeat("{1:", n) + "1" + repeat("}", n) + " }}");
    sources.push_back("{{ " + repeat("-", n) + "1 }}");
    sources.push_back("{{ " + repeat("not ", n) + "1 }}");
    sources.push_back("{{ 1" + repeat(" + 1", n) + " }}");
    sources.push_back("{{ x" + repeat(" or x", n) + " }}");
    sources.push_back("{{ 1" + repeat(" ** 1", n) + " }}");
    sources.push_back("{{ x" + repeat(" | default(x)", n) + " }}");
    sources.push_back("{{ x" + repeat(" if x else x", n) + " }}");
    sources.push_back("{{ x" + repeat(" if x", n) + " }}");
    sources.push_back("{{ {}" + repeat(".get(1, {})", n) + " }}");
    sources.push_back("{{ " + repeat("x | default(", n) + "1" + repeat(")", n) + " }}");
    sources.push_back(repeat("{% if 1 %}", n) + "x" + repeat("{% endif %}", n));
    sources.push_back(repeat("{% for x in [1] %}", n) + "x" + repeat("{% endfor %}", n));
    sources.push_back(repeat("{% set x %}", n) + "x" + repeat("{% endset %}", n));
    sources.push_back(repeat("{% filter upper %}", n) + "x" + repeat("{% endfilter %}", n));
    sources.push_back(repeat("{% macro m() %}", n) + "x" + repeat("{% endmacro %}", n) + "{{ m() }}");
    sources.push_back("{% for " + repeat("(", n) + "x" + repeat(")", n) + " in [] %}{% endfor %}");
  }
  sources.push_back(
      "{% macro m(a) %}{% for x in [1] if x %}{% if x %}{{ ([m([a]), 1] | map('upper') | list)[0] ~ '' }}{% endif %}{% "
      "endfor %}{% endmacro %}{{ m(1) }}");
  sources.push_back(
      "{% set ns = namespace(a=[1]) %}{% for i in range(97) %}{% set ns.a = [ns.a] %}{% endfor %}"
      "{% macro m(n) %}{{ m(n - 1) if n > 0 else [ns.a | tojson(indent=1), ns.a == ns.a, ns.a | string] | join }}{% "
      "endmacro %}{{ m(20) }}");

  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  const auto body = [](void*) -> void* {
    for (const std::string& source : sources) ++(render(source) ? rendered_count : refused_count);
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_GT(rendered_count, 0U);
  EXPECT_GT(refused_count, 0U);
  EXPECT_EQ(rendered_count + refused_count, sources.size());
}

// -- arbitrary input

template_limits fuzz_limits() {
  template_limits limits;
  limits.steps_max = 20'000;
  limits.memory_bytes_max = 1 << 20;
  limits.output_bytes_max = 1 << 18;
  return limits;
}

chat_input fuzz_input() {
  chat_input input;
  input.messages = json::parse(
      R"([{"role": "user", "content": "é"}, {"role": "assistant", "content": null, "tool_calls": [{"a": 1}]}])");
  input.variables = json::parse(R"({"x": [1, 2.5, "s", null, true], "d": {"a": 1, "items": 2}, "n": -3, "s": "aß漢"})");
  return input;
}

/// Returns true if it parsed.
bool try_out(std::string source, const chat_input& input) {
  const auto parsed = chat_template::parse(std::move(source), fuzz_limits());
  if (!parsed) {
    EXPECT_EQ(parsed.error().code, errc::invalid_template);
    return false;
  }
  if (const auto output = parsed->render(input); !output) {
    EXPECT_FALSE(output.error().context.empty());
  }
  return true;
}

TEST(chat_template, takes_any_bytes_without_harm) {
  constexpr std::string_view punctuation = "{}%#-+'\"\\ \n()[]|.,:=~*/<>!abx019_";
  std::mt19937 random(11);
  const chat_input input = fuzz_input();
  constexpr int trials = 20'000;
  int parsed = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::string source;
    for (std::size_t n = random() % 60; n > 0; --n) {
      switch (random() % 6) {
        case 0:
          source += static_cast<char>(random() % 256);
          break;
        case 1:
          source += "{{";
          break;
        case 2:
          source += random() % 2 == 0 ? "}}" : "%}";
          break;
        case 3:
          source += random() % 3 == 0 ? "{#" : "{%";
          break;
        default:
          source += punctuation[random() % punctuation.size()];
          break;
      }
    }
    parsed += try_out(std::move(source), input) ? 1 : 0;
  }
  EXPECT_GT(parsed, 0) << "short ones are plain text";
  EXPECT_LT(parsed, trials) << "most begin what they do not end";
}

TEST(chat_template, takes_any_soup_of_tokens_without_harm) {
  static const std::vector<std::string> atoms = {"x",
                                                 "d",
                                                 "n",
                                                 "s",
                                                 "messages",
                                                 "loop",
                                                 "ns",
                                                 "m",
                                                 "range",
                                                 "namespace",
                                                 "caller",
                                                 "1",
                                                 "0",
                                                 "-1",
                                                 "2.5",
                                                 "'a'",
                                                 "''",
                                                 "none",
                                                 "true",
                                                 "undefined_thing",
                                                 "[]",
                                                 "{}",
                                                 "9223372036854775807",
                                                 "x[0]",
                                                 "d.a",
                                                 "messages[0].content"};
  static const std::vector<std::string> operators = {" + ",  " - ",    " * ", " / ",  " // ",     " % ",   " ** ",
                                                     " ~ ",  " == ",   " < ", " in ", " not in ", " and ", " or ",
                                                     " if ", " else ", ", ",  " is ", " | ",      "."};
  static const std::vector<std::string> names = {
      "defined", "none",     "string",  "mapping", "upper",  "trim",  "tojson", "length", "join",
      "list",    "first",    "sort",    "map",     "select", "items", "get",    "split",  "replace",
      "strip",   "indent",   "default", "unique",  "int",    "float", "abs",    "count",  "selectattr",
      "reverse", "dictsort", "even",    "index",   "rsplit", "title", "find",   "last",   "startswith"};
  std::mt19937 random(12);
  const auto pick = [&](const std::vector<std::string>& from) { return from[random() % from.size()]; };
  const std::function<std::string(int)> expression = [&](int depth) -> std::string {
    if (depth <= 0) return pick(atoms);
    switch (random() % 10) {
      case 0:
        return "(" + expression(depth - 1) + ")";
      case 1:
        return "[" + expression(depth - 1) + ", " + expression(depth - 2) + "]";
      case 2:
        return "{" + expression(depth - 1) + ": " + expression(depth - 2) + "}";
      case 3:
        return expression(depth - 1) + " | " + pick(names);
      case 4:
        return expression(depth - 1) + " | " + pick(names) + "(" + expression(depth - 2) + ")";
      case 5:
        return expression(depth - 1) + "." + pick(names) + "(" + (random() % 2 == 0 ? expression(depth - 2) : "") + ")";
      case 6:
        return expression(depth - 1) + "[" + expression(depth - 2) +
               (random() % 2 == 0 ? ":" + expression(depth - 2) : "") + "]";
      case 7:
        return expression(depth - 1) + " is " + pick(names);
      case 8:
        return expression(depth - 1) + pick(operators) + expression(depth - 1);
      default:
        return pick(atoms) + "(" + expression(depth - 1) + ")";
    }
  };
  const std::function<std::string(int)> body = [&](int depth) -> std::string {
    if (depth <= 0) return " t\n";
    std::string out;
    for (std::size_t n = 1 + random() % 3; n > 0; --n) {
      const std::string e = expression(static_cast<int>(random() % 4)),
                        inner = random() % 2 == 0 ? body(depth - 1) : "";
      switch (random() % 12) {
        case 0:
          out += "{% if " + e + " %}" + inner + "{% else %}" + inner + "{% endif %}";
          break;
        case 1:
          out += "{% for x in " + e + " %}" + inner + "{{ loop.index }}{% endfor %}";
          break;
        case 2:
          out += "{% for x in " + e + " if x %}" + inner + "{{ loop.last }}{% else %}e{% endfor %}";
          break;
        case 3:
          out += "{% set x = " + e + " %}";
          break;
        case 4:
          out += "{% set ns = namespace(x=" + e + ") %}{% set ns.y = ns %}";
          break;
        case 5:
          out += "{% macro m(a, b=" + e + ") %}" + inner + "{{ caller }}{% endmacro %}{{ m(1) }}";
          break;
        case 6:
          out += "{% call m(" + e + ") %}" + inner + "{% endcall %}";
          break;
        case 7:
          out += "{% set s %}" + inner + "{% endset %}";
          break;
        case 8:
          out += "{% filter " + pick(names) + " %}" + inner + "{% endfilter %}";
          break;
        case 9:
          out += "{% for x in x %}{% break %}{% endfor %}{%- with a = " + e + " -%}" + inner + "{% endwith %}";
          break;
        default:
          out += "{{ " + e + " }}";
          break;
      }
    }
    return out;
  };
  const chat_input input = fuzz_input();
  int parsed = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string source = body(3);
    if (random() % 4 == 0 && !source.empty()) source.erase(random() % source.size(), 1 + random() % 4);
    parsed += try_out(std::move(source), input) ? 1 : 0;
  }
  EXPECT_GT(parsed, 4000) << "most generated templates should be valid";
}

TEST(chat_template, takes_damaged_templates_without_harm) {
  const json vectors =
      json::parse(test::read_file(test::source_path("tests/runtime/jinja/reference/chat_vectors.json")));
  std::mt19937 random(13);
  const chat_input input = fuzz_input();
  int tried = 0, parsed = 0;
  for (const json& one : vectors["templates"]) {
    for (int trial = 0; trial < 8; ++trial) {
      std::string source = one.get<std::string>();
      for (std::size_t n = 1 + random() % 3; n > 0 && !source.empty(); --n) {
        const std::size_t at = random() % source.size();
        if (random() % 2 == 0)
          source.erase(at, 1 + random() % 5);
        else
          source.insert(at, source.substr(random() % source.size(), random() % 12));
      }
      ++tried;
      parsed += try_out(std::move(source), input) ? 1 : 0;
    }
  }
  EXPECT_GT(parsed, 0) << "in some only text is damaged";
  EXPECT_LT(parsed, tried);
}

TEST(chat_template, may_be_rendered_by_several_threads) {
  const auto parsed =
      chat_template::parse("{% for m in messages %}{{ m.role | upper }}{{ 'a,b'.split(',') }}{% endfor %}");
  ASSERT_TRUE(parsed);
  const std::string wanted = *parsed->render(fuzz_input());
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) wrong += *parsed->render(fuzz_input()) == wanted ? 0 : 1;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace redline::jinja
