#include "actors/http/shapes/apply/next_edit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "actors/http/fields/json.hpp"

namespace redline::apply {
namespace {

using api::json;
using ::testing::HasSubstr;

std::string file_of_lines(int count) {
  std::string file;
  for (int i = 1; i <= count; ++i) file += "line " + std::to_string(i) + "\n";
  return file;
}

json request_at(const std::string& file, std::size_t cursor) {
  return {{"file_path", "a.py"}, {"file_contents", file}, {"cursor_position", cursor}, {"use_bytes", true}};
}

json answer_to(const json& request, const std::string& text, api::finish_reason finish = api::finish_reason::stop) {
  const auto parsed = parse_next_edit(dump_json(request));
  EXPECT_TRUE(parsed) << parsed.error().message;
  if (!parsed) return {};
  const std::vector<api::choice> choices{{.text = text, .finish = finish}};
  const auto body = parsed->shape->make_writer({.id = "cmpl-1"})->whole(choices, {});
  EXPECT_TRUE(body.ends_with("}\n"));
  return json::parse(body);
}

std::string applied(const json& answer, std::string file) {
  const auto begin = answer["start_index"].get<std::size_t>(), end = answer["end_index"].get<std::size_t>();
  return file.replace(begin, end - begin, answer["completion"].get<std::string>());
}

TEST(next_edit, asks_for_the_lines_around_the_cursor_in_the_models_form) {
  json request = request_at("a = 1\nb = 2\nc = 3\n", 8);
  request["recent_changes"] = "File: a.py:\n<<<<<<< ORIGINAL\na = 0\n=======\na = 1\n>>>>>>> UPDATED\n";
  request["file_chunks"] = json::array({{{"file_path", "b.py"}, {"content", "from a import a"}, {"start_line", 1}}});
  request["retrieval_chunks"] = json::array({{{"file_path", "diagnostics"}, {"content", "Line 2: b is unused\n"}}});
  request["editor_diagnostics"] = json::array({{{"line", 3}, {"message", "c is unused"}, {"severity", "WARNING"}}});
  request["repo_name"] = "r";
  request["redline"] = {{"speculation", {{"method", "auto"}}}};
  const auto parsed = parse_next_edit(dump_json(request));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(std::get<std::string>(parsed->prompts.front()),
            "<|file_sep|>a.py\na = 1\nb = 2\nc = 3\n\n"
            "<|file_sep|>context/retrieval\n<|file_sep|>b.py\nfrom a import a\n"
            "<|file_sep|>context/diagnostics\nLine 2: b is unused\n"
            "<|file_sep|>context/diagnostics\nLine 3: c is unused\n"
            "<|file_sep|>a.py.diff\noriginal:\na = 0\nupdated:\na = 1\n"
            "<|file_sep|>original/a.py:1:4\na = 1\nb = 2\nc = 3\n\n"
            "<|file_sep|>current/a.py:1:4\na = 1\nb <|cursor|>= 2\nc = 3\n\n"
            "<|file_sep|>updated/a.py:1:4\na = 1\n");
  EXPECT_EQ(parsed->stop, (std::vector<std::string>{"<|file_sep|>", "<|endoftext|>"}));
}

TEST(next_edit, gives_the_range_that_changes) {
  const std::string file = file_of_lines(40);
  const auto cursor = file.find("line 20") + 3;
  std::string rest;
  for (int i = 20; i <= 30; ++i) rest += (i == 25 ? "row " : "line ") + std::to_string(i) + "\n";
  const auto answer = answer_to(request_at(file, cursor), rest);
  EXPECT_EQ(answer["autocomplete_id"], "cmpl-1");
  EXPECT_EQ(answer["completion"], "row");
  EXPECT_EQ(applied(answer, file), std::string(file).replace(file.find("line 25"), 4, "row"));
  const auto same = answer_to(request_at(file, cursor), std::string(rest).replace(rest.find("row"), 3, "line"));
  EXPECT_EQ(same["completion"], "");
  EXPECT_EQ(applied(same, file), file);
  EXPECT_EQ(applied(answer_to(request_at(file, cursor), "line 2", api::finish_reason::length), file), file)
      << "an answer that was cut";
}

TEST(next_edit, counts_bytes_or_utf16_units_as_it_is_told) {
  const std::string file = "s = 'h\xC3\xA9\xF0\x9F\x98\x80'\nt = 1\n";
  for (const bool bytes : {true, false}) {
    json request = request_at(file, bytes ? file.size() - 2 : file.size() - 2 - 3);
    request["use_bytes"] = bytes;
    const auto answer = answer_to(request, "t = 2\n");
    EXPECT_EQ(answer["completion"], "2");
    EXPECT_EQ(answer["start_index"], bytes ? 18 : 15);
    EXPECT_EQ(answer["end_index"], bytes ? 19 : 16);
  }
  json request = request_at(file, 0);
  const auto answer = answer_to(request, "s = 'h\xC3\xA8\xF0\x9F\x98\x80'\nt = 1\n");
  EXPECT_EQ(answer["completion"], "\xC3\xA8") << "a whole character, though its first byte stays";
}

TEST(next_edit, lets_lines_be_written_again_that_were_inserted_above) {
  json request = request_at("a\n\nb\nc\n", 5);
  request["changes_above_cursor"] = true;
  const auto parsed = parse_next_edit(dump_json(request));
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(std::get<std::string>(parsed->prompts.front()).ends_with("updated/a.py:1:5\na\n\n")) << std::get<std::string>(parsed->prompts.front());
}

TEST(next_edit, takes_the_window_and_the_file_around_it_from_a_long_file) {
  const std::string file = file_of_lines(100'000);
  const auto parsed = parse_next_edit(dump_json(request_at(file, file.find("line 50000\n"))));
  ASSERT_TRUE(parsed);
  EXPECT_THAT(std::get<std::string>(parsed->prompts.front()), HasSubstr("current/a.py:49990:50010\nline 49990\n"));
  EXPECT_LT(std::get<std::string>(parsed->prompts.front()).size(), 14'000U);
  const std::string one_line(100'000, 'x');
  EXPECT_TRUE(parse_next_edit(dump_json(request_at(one_line, 50'000))));
  EXPECT_TRUE(parse_next_edit(dump_json(request_at("", 0))));
}

TEST(next_edit, begins_the_prompt_alike_while_the_cursor_moves_little) {
  const std::string file = file_of_lines(2000);
  const auto first_line_at = [&](std::size_t cursor) {
    const auto parsed = parse_next_edit(dump_json(request_at(file, cursor)));
    const auto& prompt = std::get<std::string>(parsed->prompts.front());
    EXPECT_LE(prompt.find("original/"), 7'600U);
    EXPECT_GE(prompt.find("original/"), 5'400U);
    return prompt.substr(0, prompt.find("\n", 20));
  };
  std::set<std::string> seen;
  for (std::size_t cursor = 8000; cursor < 12'096; cursor += 16) seen.insert(first_line_at(cursor));
  EXPECT_LE(seen.size(), 3U);
}

TEST(next_edit, says_what_is_wrong) {
  const auto refused_at = [](const json& request) {
    const auto parsed = parse_next_edit(dump_json(request));
    return parsed ? std::string("nothing") : parsed.error().param;
  };
  const json good = request_at("a\n", 1);
  EXPECT_EQ(refused_at(good), "nothing");
  for (const auto* name : {"file_path", "file_contents", "cursor_position"}) {
    json request = good;
    request.erase(name);
    EXPECT_EQ(refused_at(request), name);
    request[name] = json::array();
    EXPECT_EQ(refused_at(request), name);
  }
  EXPECT_EQ(refused_at(request_at("a\n", 3)), "cursor_position");
  json request = good;
  request["file_chunks"] = json::array({7});
  EXPECT_EQ(refused_at(request), "file_chunks[0]");
  request = good;
  request["redline"] = {{"methd", "auto"}};
  EXPECT_EQ(refused_at(request), "redline.methd");
  EXPECT_FALSE(parse_next_edit("["));
}

}  // namespace
}  // namespace redline::apply
