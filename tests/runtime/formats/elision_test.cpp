#include "runtime/formats/elision.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "runtime/text/line_diff.hpp"

namespace redline::formats {
namespace {

constexpr std::string_view shop =
    "import { tax } from './tax';\n"
    "\n"
    "function net(items) {\n"
    "  let sum = 0;\n"
    "  for (const item of items) {\n"
    "    sum += item.price;\n"
    "  }\n"
    "  return sum;\n"
    "}\n"
    "\n"
    "function gross(items) {\n"
    "  return net(items) * (1 + tax);\n"
    "}\n"
    "\n"
    "export { net, gross };\n";

std::string shop_with(std::string_view old, std::string_view replacement) {
  std::string out(shop);
  out.replace(out.find(old), old.size(), replacement);
  return out;
}

TEST(elision, comments_at_both_ends_stand_for_the_rest_of_the_file) {
  EXPECT_EQ(expected_file(shop,
                          "// ... existing code ...\n"
                          "function gross(items) {\n"
                          "  log(items);\n"
                          "  return net(items) * (1 + tax);\n"
                          "}\n"
                          "// ... existing code ...\n"),
            shop_with("  return net(", "  log(items);\n  return net("));
}

TEST(elision, several_blocks_are_put_in_place_in_order) {
  EXPECT_EQ(expected_file(shop,
                          "import { tax } from './tax';\n"
                          "import { log } from './log';\n"
                          "// ... rest of code ...\n"
                          "  for (const item of items) {\n"
                          "    sum += item.price * item.count;\n"
                          "  }\n"
                          "// ... keep existing code ...\n"
                          "  return net(items) * (1 + tax);\n"
                          "}\n"
                          "\n"
                          "// more\n"
                          "export { net, gross };\n"),
            "import { tax } from './tax';\n"
            "import { log } from './log';\n"
            "\n"
            "function net(items) {\n"
            "  let sum = 0;\n"
            "  for (const item of items) {\n"
            "    sum += item.price * item.count;\n"
            "  }\n"
            "  return sum;\n"
            "}\n"
            "\n"
            "function gross(items) {\n"
            "  return net(items) * (1 + tax);\n"
            "}\n"
            "\n"
            "// more\n"
            "export { net, gross };\n");
}

TEST(elision, a_comment_inside_a_function_keeps_its_lines) {
  EXPECT_EQ(expected_file(shop,
                          "// ...\n"
                          "function net(items) {\n"
                          "  // ... UNCHANGED CODE\n"
                          "  return round(sum);\n"
                          "}\n"
                          "\n"
                          "function gross(items) {\n"
                          "// ...\n"),
            // Nothing says that the changed line replaces another.
            shop_with("  return sum;\n", "  return sum;\n  return round(sum);\n"));
}

TEST(elision, every_vendors_comment_is_known) {
  for (const std::string_view comment : {"// ... existing code ...",
                                         "# ... existing code ...",
                                         "-- ... existing code ...",
                                         "; ... rest of file",
                                         "% ... unchanged ...",
                                         "' ... other subs ...",
                                         "/* ... existing styles ... */",
                                         "<!-- ... existing rows ... -->",
                                         "{/* ... existing props ... */}",
                                         "\"\"\"... rest of the class ...\"\"\"",
                                         "// \xE2\x80\xA6 existing code \xE2\x80\xA6",
                                         "// ... rest of code ...",
                                         "// ... keep calculateTotal function ...",
                                         "// ... code remains the same",
                                         "// rest of the code unchanged...",
                                         "// ...",
                                         "...",
                                         "// UNCHANGED CODE",
                                         "... existing code ...",
                                         "    // ... same as before",
                                         "// ... previous methods"}) {
    // Tax is in the first line and the export in the last, so all between is left out.
    const std::string update =
        "import { tax } from './tax';\n" + std::string(comment) + "\nexport { net, gross };\nlast();\n";
    EXPECT_EQ(expected_file(shop, update), std::string(shop) + "last();\n") << comment;
  }
}

TEST(elision, code_with_dots_is_no_comment) {
  for (const std::string_view code :
       {"f(...args);", "...others,", "const { a, ...rest } = b;", "x = [...previous, y];", "// wait...", "...keep"}) {
    const std::string update = "import { tax } from './tax';\n" + std::string(code) + "\nexport { net, gross };\n";
    EXPECT_EQ(expected_file(shop, update), update) << code;
  }
  // What the file contains is code.
  const std::string_view stub = "def a():\n    ...\n\ndef b():\n    ...\n";
  EXPECT_EQ(expected_file(stub, "def a():\n    ...\n\ndef b():\n    return 1\n"),
            "def a():\n    ...\n\ndef b():\n    return 1\n    ...\n");
}

TEST(elision, lines_between_neighbors_without_a_comment_are_replaced) {
  EXPECT_EQ(expected_file(shop,
                          "// ... existing code ...\n"
                          "  let sum = 0;\n"
                          "  return sum;\n"
                          "// ... existing code ...\n"),
            shop_with("  for (const item of items) {\n    sum += item.price;\n  }\n", ""));
}

TEST(elision, a_removal_comment_stands_for_no_line) {
  EXPECT_EQ(expected_file(shop,
                          "// ... keep existing code ...\n"
                          "  return sum;\n"
                          "}\n"
                          "\n"
                          "// remove gross\n"
                          "export { net, gross };\n"),
            shop_with("function gross(items) {\n  return net(items) * (1 + tax);\n}\n\n", ""));
}

TEST(elision, a_closing_bracket_ends_the_deeper_lines_before_it) {
  EXPECT_EQ(expected_file(shop,
                          "// ... existing code ...\n"
                          "function net(items) {\n"
                          "  return items.reduce((sum, item) => sum + item.price, 0);\n"
                          "}\n"
                          "// ... existing code ...\n"),
            shop_with("  let sum = 0;\n  for (const item of items) {\n    sum += item.price;\n  }\n  return sum;\n",
                      "  return items.reduce((sum, item) => sum + item.price, 0);\n"));
  // The bracket of a new part is not that of a later one.
  EXPECT_EQ(expected_file(shop,
                          "// ... existing code ...\n"
                          "  let sum = 0;\n"
                          "  if (!items) {\n"
                          "    return 0;\n"
                          "  }\n"
                          "// ... existing code ...\n"),
            shop_with("  let sum = 0;\n", "  let sum = 0;\n  if (!items) {\n    return 0;\n  }\n"));
}

TEST(elision, new_text_behind_a_comment_is_added_at_the_end) {
  EXPECT_EQ(expected_file("a = 1", "# ... existing code ...\n\nb = 2"), "a = 1\n\nb = 2");
  EXPECT_EQ(expected_file(shop, "// new\n// ... existing code ...\n"), "// new\n" + std::string(shop));
}

TEST(elision, an_update_without_a_comment_replaces_only_what_it_spans) {
  EXPECT_EQ(expected_file(shop, "  let sum = 0;\n  log(sum);\n  for (const item of items) {\n"),
            shop_with("  let sum = 0;\n", "  let sum = 0;\n  log(sum);\n"));
  EXPECT_EQ(expected_file(shop, "unknown();\n"), shop);
  EXPECT_EQ(expected_file(shop, ""), shop);
  EXPECT_EQ(expected_file(shop, shop), shop);
  EXPECT_EQ(expected_file(shop, "// ... existing code ...\n"), shop);
  EXPECT_EQ(expected_file(shop, "// ... existing code ...\nwhere();\n// ... existing code ...\n"), shop);
}

TEST(elision, blocks_in_another_order_change_nothing) {
  EXPECT_EQ(expected_file(shop,
                          "// ... existing code ...\n"
                          "export { net, gross };\n"
                          "// ... existing code ...\n"
                          "  let sum = 0;\n"
                          "  log(sum);\n"
                          "// ... existing code ...\n"),
            shop);
}

TEST(elision, an_update_with_other_indentation_is_shifted) {
  const std::string_view file =
      "class A:\n    def f(self):\n        a()\n        b()\n\n    def g(self):\n        c()\n";
  EXPECT_EQ(expected_file(file, "def f(self):\n    a()\n    new()\n    b()\n"),
            "class A:\n    def f(self):\n        a()\n        new()\n        b()\n\n    def g(self):\n        c()\n");
  EXPECT_EQ(expected_file("f:\n\ta()\n\tb()\n", "\t\ta()\n\t\tx()\n\t\tb()\n"), "f:\n\ta()\n\tx()\n\tb()\n");
  // Not uniformly: nothing is known.
  EXPECT_EQ(expected_file(file, "def f(self):\n  a()\n  new()\n"), file);
}

TEST(elision, the_result_has_the_form_of_the_file) {
  EXPECT_EQ(expected_file("a\r\nb\r\nc\r\n", "a\nx\n# ... existing code ...\n"), "a\r\nx\r\nb\r\nc\r\n");
  EXPECT_EQ(expected_file("a\nb\nc", "a\nx\nb\n# ...\n"), "a\nx\nb\nc");
  EXPECT_EQ(expected_file("a\nb\n", "# ...\nb\nc"), "a\nb\nc\n");
  EXPECT_EQ(expected_file("a  \nb\n", "a\nx\nb\n"), "a  \nx\nb\n");
  EXPECT_EQ(expected_file("", "a\n"), "a\n");
  EXPECT_EQ(expected_file("", ""), "");
}

TEST(elision, random_updates_give_lines_of_both_texts) {
  std::mt19937 random(3);
  const std::vector<std::string> pool = {"a",   "b",   "  c", "  d", "}",           "",  "// ... existing code ...",
                                         "...", "  }", "e",   "f\r", "// remove a", "{", "    a"};
  const auto text = [&](std::size_t most) {
    std::string out;
    for (auto count = random() % most; count > 0; --count) out += pool[random() % pool.size()] + "\n";
    if (!out.empty() && random() % 3 == 0) out.pop_back();
    return out;
  };
  const auto bare = [](std::string_view line) {
    std::string out(line);
    std::erase_if(out, [](char c) { return c == ' ' || c == '\r' || c == '\n'; });
    return out;
  };
  for (int trial = 0; trial < 20'000; ++trial) {
    const std::string file = text(12);
    const std::string update = text(10);
    const std::string result = expected_file(file, update);
    std::set<std::string> known;
    for (const auto line : text::split_lines(file)) known.insert(bare(line));
    for (const auto line : text::split_lines(update)) known.insert(bare(line));
    for (const auto line : text::split_lines(result)) {
      ASSERT_TRUE(known.contains(bare(line))) << file << "---\n" << update << "---\n" << result;
    }
    ASSERT_LE(result.size(), file.size() + update.size() + 40) << file << "---\n" << update << "---\n" << result;
    EXPECT_EQ(expected_file(file, file), file);
  }
}

TEST(elision, the_work_grows_as_that_of_sorting) {
  const auto count_for = [](std::size_t lines, auto line_of, auto update_of) {
    std::string file;
    std::string update;
    for (std::size_t i = 0; i < lines; ++i) {
      file += line_of(i) + "\n";
      update += update_of(i) + "\n";
    }
    std::uint64_t count = 0;
    (void)expected_file(file, update, &count);
    return count;
  };
  const auto numbered = [](std::size_t i) { return "line " + std::to_string(i); };
  const auto deep = [](std::size_t i) { return (i % 2 == 0 ? "key " : "    deep ") + std::to_string(i); };
  const auto same = [](std::size_t) { return std::string("same"); };
  const auto bracket = [](std::size_t i) { return i % 3 == 0 ? "key " + std::to_string(i) : std::string("}"); };
  const auto elided = [](std::size_t i) {
    return i % 2 == 0 ? "key " + std::to_string(i) : std::string("// ... existing code ...");
  };
  const auto dots = [](std::size_t) { return std::string("// ..."); };
  const auto closed = [](std::size_t i) {
    return i % 3 == 0 ? "key " + std::to_string(2 * i) : i % 3 == 1 ? "}" : "...";
  };
  const auto shifted = [](std::size_t i) { return "  line " + std::to_string(i); };
  const auto check = [&](auto line_of, auto update_of) {
    const auto small = count_for(5'000, line_of, update_of);
    const auto large = count_for(40'000, line_of, update_of);
    EXPECT_LE(large, 12 * small);  // 8 times the lines, and log(40000) / log(5000) is 1.25
    EXPECT_LE(large, 60U * 40'000);
  };
  check(numbered, numbered);
  check(numbered, elided);
  check(numbered, shifted);
  check(deep, elided);
  check(deep, closed);
  check(same, same);
  check(same, bracket);
  check(bracket, bracket);
  check(bracket, closed);
  check(numbered, dots);
}

}  // namespace
}  // namespace redline::formats
