// Edit sessions through the real gateway, scheduler and target model, in a world whose order comes from a seed. A
// completion must equal that of a session opened just before with the same text.

#include "actors/editing/edit_session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "actors/http/gateway.hpp"
#include "runtime/base/log.hpp"
#include "tests/support/rounds.hpp"
#include "tests/support/serving_world.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::json;
using ::testing::HasSubstr;

constexpr std::uint32_t pages_count = 24;
constexpr std::uint32_t context_max = 256;
constexpr microseconds patience{120'000'000};  // in virtual time

using test::manager_where, test::target_where;
constexpr auto gateway_where = actor::make_address(1, 1, 2);
constexpr auto http_where = actor::make_address(1, 2, 8);

/// The responses to the clients, by exchange.
struct answers {
  struct one {
    std::optional<std::uint32_t> status;
    header_list headers;
    std::string body;  // the body, or the events so far
    bool over = false;
  };
  std::map<std::uint64_t, one> all;
};

class http_stand_in final : public actor::actor_of<http_stand_in> {
 public:
  using accepts = actor::protocol<http_respond, http_stream, http_drain>;
  http_stand_in(actor::actor_context& context, std::shared_ptr<answers> heard)
      : actor_of(context), heard_(std::move(heard)) {}
  void on(const http_respond& m) { heard_->all[m.exchange] = {m.status, m.headers, m.body, true}; }
  void on(const http_stream& m) {
    auto& a = heard_->all[m.exchange];
    if (m.begin) a.status = 200;
    a.body += m.data;
    a.over = a.over || m.end;
  }
  void on(const http_drain&) {}

 private:
  std::shared_ptr<answers> heard_;
};

class edit_sessions : public testing::Test {
 protected:
  explicit edit_sessions(std::uint64_t seed = 1) : world(seed) {}

  void SetUp() override {
    configure_log(log_level::off, log_format::text);
    start();
  }

  void start(const std::vector<std::string>& keys = {}, edit_limits limits = {}) {
    static const auto file = test::make_tiny_model({.context = context_max}).file();
    static kernels::worker_team team{1};
    static const auto& table = *kernels::process_table().table;
    static const auto weights = *model::load_weights(*file, table, team);
    tokenizer = *text::tokenizer::from_file(*file);
    scheduler_options options;
    options.limits = {.running_max = 4, .waiting_max = 64, .tokens_max = context_max};
    options.budget = {.rows_max = 64, .prompt_chunk_rows_max = 16};
    test::add_target(world, options, pages_count, [] {
      return std::move(*model::transformer::create(
          weights, table, team, {.pages_count = pages_count, .kv = model::kv_type::f32, .rows_max = 64}));
    });
    world.add_worker(1, 2).add<http_stand_in>(
        8, "http", test::roomy, [h = heard](actor::actor_context& c) { return std::make_unique<http_stand_in>(c, h); });
    auto s = std::make_shared<gateway_services>();
    auto model = std::make_shared<served_model>();
    model->name = "tiny";
    model->answers = std::make_shared<answer_factory>(
        answer_factory::parts{.tokenizer = tokenizer,
                              .context_max = context_max,
                              .partners_for = [](draft::method, actor::address client) -> result<session_partners> {
                                return session_partners{.manager = {manager_where}, .client = client};
                              }});
    model->prompts =
        std::make_shared<prompt_builder>(tokenizer, *jinja::chat_template::parse(std::string(jinja::chatml_template)));
    model->draft_defaults.how = draft::method::lookup;
    s->models->publish(model);
    s->manager = {manager_where};
    s->http = http_where;
    s->keys = std::make_shared<key_ring>(std::move(*api_keys::load(keys)));
    s->editing = limits;
    memory = s->edit_bytes;
    answers_of_model = model->answers;
    world.add_worker(1, 1).add<gateway>(2, "gateway", test::roomy,
                                        [s](actor::actor_context& c) { return std::make_unique<gateway>(c, s); });
    world.run_for(microseconds{2'000'000});  // until the gateway learns that the model is up
  }

  std::uint64_t ask(const std::string& method, const std::string& path, const json& body = {},
                    const std::string& key = "") {
    http_arrived m{.exchange = ++exchange, .method = method, .path = path, .body = body.is_null() ? "" : body.dump()};
    if (!key.empty()) m.headers.emplace_back("Authorization", "Bearer " + key);
    world.send(gateway_where, m, http_where);
    return exchange;
  }
  const answers::one& await(std::uint64_t id) {
    EXPECT_TRUE(world.run_until([&] { return heard->all[id].over; }, patience))
        << "exchange " << id << " got no answer";
    return heard->all[id];
  }
  std::pair<std::uint32_t, json> call(const std::string& method, const std::string& path, const json& body = {},
                                      const std::string& key = "") {
    for (int tries = 0;; ++tries) {
      const auto& a = await(ask(method, path, body, key));
      json parsed = a.body.empty() ? json() : json::parse(a.body, nullptr, false);
      // Right after a restart the scheduler may report that its target has not announced itself; clients then retry.
      const bool is_loading = a.status == 503U && parsed["error"]["code"] == "loading";
      if (!is_loading || tries == 3) return {a.status.value_or(0), std::move(parsed)};
      world.run_for(microseconds{1'000'000});
    }
  }

  std::string open(const std::string& text, const json& more = json::object(), const std::string& key = "") {
    json body = {{"files", {{{"path", "a.py"}, {"text", text}}}}};
    body.update(more);
    const auto [status, made] = call("POST", "/v1/redline/sessions", body, key);
    EXPECT_EQ(status, 201U) << made;
    return made.value("id", "");
  }
  static std::string at(const std::string& session, const std::string& rest = "") {
    return "/v1/redline/sessions/" + session + rest;
  }
  static json insertion(std::int64_t version, std::uint32_t line, std::uint32_t character, const std::string& text) {
    const json place = {{"line", line}, {"character", character}};
    return {{"version", version}, {"edits", {{{"range", {{"start", place}, {"end", place}}}, {"text", text}}}}};
  }
  static std::string text_of(const json& completion) { return completion["choices"][0]["text"]; }

  test::actor_world world;
  std::shared_ptr<answers> heard = std::make_shared<answers>();
  std::shared_ptr<const text::tokenizer> tokenizer;
  // These belong to the server that was started last.
  std::shared_ptr<const edit_memory> memory;
  std::shared_ptr<const answer_factory> answers_of_model;
  std::uint64_t exchange = 0;
};

TEST_F(edit_sessions, are_opened_edited_completed_shown_and_closed) {
  const auto id = open("def f(x):\n    return x\n");
  auto [status, body] = call("PATCH", at(id, "/files/a.py"), insertion(2, 0, 6, "x, y="));
  EXPECT_EQ(status, 200U) << body;
  EXPECT_EQ(body["version"], 2);
  EXPECT_EQ(body["tokens_inserted"], 5);
  EXPECT_EQ(body["tokens_removed"], 0);
  std::tie(status, body) = call("GET", at(id, "/files/a.py"));
  EXPECT_EQ(body["text"], "def f(x, y=x):\n    return x\n");
  std::tie(status, body) = call("PUT", at(id, "/files/lib/b.py"), {{"text", "b\n"}});
  EXPECT_EQ(status, 201U);
  std::tie(status, body) = call("GET", at(id));
  EXPECT_EQ(body["object"], "redline.session");
  EXPECT_EQ(body["position_encoding"], "utf-16");
  ASSERT_EQ(body["files"].size(), 2U);
  EXPECT_EQ(body["files"][1]["path"], "lib/b.py");
  std::tie(status, body) = call("DELETE", at(id, "/files/lib/b.py"));
  EXPECT_EQ(status, 204U);
  std::tie(status, body) = call("POST", at(id, "/complete"), {{"path", "a.py"}, {"max_tokens", 5}});
  EXPECT_EQ(status, 200U) << body;
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["usage"]["redline"]["kv"]["exact"], body["usage"]["prompt_tokens"]);
  EXPECT_EQ(body["usage"]["redline"]["kv"]["stale"], 0);
  std::tie(status, body) = call("DELETE", at(id));
  EXPECT_EQ(status, 204U);
  std::tie(status, body) = call("GET", at(id));
  EXPECT_EQ(status, 404U);
  EXPECT_EQ(body["error"]["code"], "session_not_found");
}

TEST_F(edit_sessions, refuse_what_makes_no_sense_and_say_why) {
  const auto id = open("ab\n");
  const auto refused = [&](const std::string& method, const std::string& path, const json& body, std::uint32_t status,
                           const std::string& code, const std::string& words_in_message) {
    const auto [found, answer] = call(method, path, body);
    EXPECT_EQ(found, status) << answer;
    EXPECT_EQ(answer["error"]["code"].is_null() ? "" : answer["error"]["code"], code) << answer;
    EXPECT_NE(answer["error"]["message"].get<std::string>().find(words_in_message), std::string::npos) << answer;
  };
  const auto file = at(id, "/files/a.py");
  refused("PATCH", file, insertion(3, 0, 0, "x"), 409, "session_version_mismatch", "expected an edit of version 1");
  refused("PATCH", file, insertion(2, 5, 0, "x"), 400, "", "edit 0: expected a line below 2, found 5");
  refused("PATCH", file, insertion(2, 0, 3, "x"), 400, "", "expected a character up to 2");
  refused("PATCH", file, {{"version", 2}}, 400, "", "'edits' is required");
  refused("PATCH", file, {{"version", 2}, {"edits", {{{"rnge", 1}, {"text", ""}}}}}, 400, "", "range");
  refused("PATCH", at(id, "/files/no.py"), insertion(2, 0, 0, "x"), 404, "file_not_found", "no.py");
  refused("PUT", file, {{"text", "x"}, {"version", 1}}, 409, "session_version_mismatch", "after 1");
  refused("POST", at(id, "/complete"), {{"path", "no.py"}}, 404, "file_not_found", "no.py");
  refused("POST", at(id, "/complete"), {{"path", "a.py"}, {"version", 7}}, 409, "session_version_mismatch", "found 7");
  refused("POST", at(id, "/complete"), {{"path", "a.py"}, {"position", {{"line", 9}, {"character", 0}}}}, 400, "",
          "line");
  refused("POST", at(id, "/complete"), {{"path", "a.py"}, {"n", 2}}, 400, "", "one sequence");
  refused("POST", at(id, "/complete"), {{"path", "a.py"}, {"mode", "middle"}}, 400, "", "line, text and fim");
  refused("POST", at(id, "/complete"), {{"path", "a.py"}, {"mode", "text"}, {"position", {{"byte", 0}}}}, 400, "",
          "no text before");
  refused("POST", at(id, "/edit"), {{"path", "a.py"}}, 400, "", "'instruction' is required");
  refused("POST", at(id), json::object(), 405, "", "POST is not allowed");
  refused("POST", at(id, "/nothing"), json::object(), 404, "", "There is no path");
  refused("GET", at("live-12"), {}, 404, "session_not_found", "live-12");
  refused("POST", "/v1/redline/sessions", {{"files", {{{"path", ""}, {"text", ""}}}}}, 400, "", "path");
  refused("POST", "/v1/redline/sessions", {{"position_encoding", "utf-32"}}, 400, "", "utf-16");
  refused("POST", "/v1/redline/sessions", {{"cache", {{"policy", "lazy"}}}}, 400, "", "exact, pie and conflict");
  refused("POST", "/v1/redline/sessions", {{"cache", {{"heals", true}}}}, 400, "", "heals");
  refused("POST", "/v1/redline/sessions", {{"cache", {{"healing", "yes"}}}}, 400, "", "cache.healing");
  refused("POST", "/v1/redline/sessions", {{"cache", "pie"}}, 400, "", "cache");
  refused("POST", "/v1/redline/sessions", {{"model", "other"}}, 404, "model_not_found", "other");
  EXPECT_EQ(call("GET", file).second["version"], 1);  // nothing above changed it
}

TEST_F(edit_sessions, read_the_lines_next_to_the_cursor_of_a_file_longer_than_the_context) {
  std::string lines;
  for (int i = 100; i < 162; ++i) lines += std::to_string(i) + " line\n";
  const json wish = {{"path", "a.py"}, {"mode", "text"}, {"max_tokens", 8}};
  const auto long_one = open(lines);
  const auto whole = call("POST", at(long_one, "/complete"), wish).second;
  const auto count = tokenizer->encode(lines).size();
  ASSERT_GT(count, context_max);
  const std::size_t read = whole["usage"]["prompt_tokens"];
  EXPECT_LE(read, context_max - context_max / 4);
  EXPECT_GE(read, context_max / 2);

  // A session that has only those lines gives the same text.
  std::size_t from = lines.size();
  while (tokenizer->encode(lines.substr(from)).size() < read) from = lines.rfind('\n', from - 2) + 1;
  ASSERT_EQ(tokenizer->encode(lines.substr(from)).size(), read);
  const auto short_one = call("POST", at(open(lines.substr(from)), "/complete"), wish).second;
  EXPECT_EQ(text_of(whole), text_of(short_one));

  // Typing does not move the start of what is read.
  call("PATCH", at(long_one, "/files/a.py"), insertion(2, 62, 0, "abc"));
  const auto typed = call("POST", at(long_one, "/complete"), wish).second;
  EXPECT_EQ(typed["usage"]["prompt_tokens"], read + tokenizer->encode("abc").size());
}

class edit_sessions_with_keys : public edit_sessions {
  void SetUp() override { configure_log(log_level::off, log_format::text); }
};

TEST_F(edit_sessions_with_keys, are_nobody_elses_business_and_are_counted_by_tenant) {
  start({"ann:key-of-ann", "bob:key-of-bob"}, {.sessions_max = 3, .tenant_sessions_max = 2});
  const auto id = open("a", json::object(), "key-of-ann");
  EXPECT_EQ(call("GET", at(id), {}, "key-of-ann").first, 200U);
  const auto [status, body] = call("GET", at(id), {}, "key-of-bob");
  EXPECT_EQ(status, 404U);
  EXPECT_EQ(body, call("GET", at(id), {}, "key-of-bob").second);
  EXPECT_EQ(call("DELETE", at(id), {}, "key-of-bob").first, 404U);
  open("b", json::object(), "key-of-ann");
  const auto third = call("POST", "/v1/redline/sessions", json::object(), "key-of-ann");
  EXPECT_EQ(third.first, 429U);
  EXPECT_EQ(third.second["error"]["code"], "session_limit");
  open("c", json::object(), "key-of-bob");
  EXPECT_EQ(call("POST", "/v1/redline/sessions", json::object(), "key-of-bob").first, 429U);  // the server's limit
  call("DELETE", at(id), {}, "key-of-ann");
  EXPECT_EQ(call("POST", "/v1/redline/sessions", json::object(), "key-of-bob").first, 201U);
}

TEST_F(edit_sessions_with_keys, hold_no_more_bytes_than_they_may_and_give_them_back) {
  start({"ann:key-of-ann", "bob:key-of-bob"}, {.tenant_bytes_max = 140'000, .bytes_max = 200'000});
  const std::string text(8'000, 'x');  // each takes 5 bytes
  const auto first = open(text, {{"idle_seconds", 30}}, "key-of-ann");
  const auto held = memory->bytes();
  EXPECT_GT(held, 5 * text.size());
  EXPECT_LT(held, 7 * text.size());
  const auto second = open(text, json::object(), "key-of-ann");
  EXPECT_EQ(memory->bytes(), 2 * held);
  const json big{{"files", {{{"path", "a.py"}, {"text", text + text}}}}};
  const auto [status, why] = call("POST", "/v1/redline/sessions", big, "key-of-ann");
  EXPECT_EQ(status, 429U);
  EXPECT_EQ(why["error"]["code"], "session_memory_limit");
  EXPECT_THAT(why["error"]["message"], HasSubstr("Your edit sessions may use at most 140000 bytes"));
  EXPECT_THAT(call("PUT", at(second, "/files/b.py"), {{"text", text + text}}, "key-of-ann").second["error"]["message"],
              HasSubstr("close a session or remove files"));
  EXPECT_EQ(call("PATCH", at(second, "/files/a.py"), insertion(2, 0, 0, text + text), "key-of-ann").first, 429U);
  EXPECT_EQ(memory->bytes(), 2 * held) << "a refused session owns no memory";
  EXPECT_EQ(memory->refused_count(), 3U);

  open(text + text, json::object(), "key-of-bob");
  EXPECT_THAT(call("POST", "/v1/redline/sessions", big, "key-of-bob").second["error"]["message"],
              HasSubstr("Your edit sessions"));
  EXPECT_THAT(call("PUT", at(second, "/files/b.py"), {{"text", text}}, "key-of-ann").second["error"]["message"],
              HasSubstr("The edit sessions of this server may use at most 200000 bytes"));

  EXPECT_EQ(call("DELETE", at(second, "/files/a.py"), {}, "key-of-ann").first, 204U);
  EXPECT_LT(memory->bytes(), 3.2 * static_cast<double>(held)) << "a dropped file returns its memory";
  EXPECT_EQ(call("DELETE", at(second), {}, "key-of-ann").first, 204U);
  world.run_for(microseconds{40'000'000});
  EXPECT_LT(memory->bytes(), 2.2 * static_cast<double>(held)) << "so do a closed session and an abandoned one";
  EXPECT_EQ(call("GET", at(first), {}, "key-of-ann").first, 404U);
  open(text, json::object(), "key-of-ann");
}

TEST_F(edit_sessions_with_keys, count_the_completions_that_wait_as_memory_and_refuse_more) {
  constexpr std::size_t most = 4'000;
  start({"ann:key-of-ann"}, {.bytes_max = most});
  const auto id = open("first", json::object(), "key-of-ann");
  const auto held = memory->bytes();
  std::vector<std::uint64_t> asked;
  for (int i = 0; i < 12; ++i) {
    asked.push_back(ask("POST", at(id, "/complete"),
                        {{"path", "a.py"},
                         {"max_tokens", 8},
                         {"mode", "text"},
                         {"stop", {std::string(250, 'p'), std::string(250, 'q')}}},
                        "key-of-ann"));
  }
  std::size_t done = 0, refused = 0, highest = 0;
  const auto all_over = [&] {
    highest = std::max(highest, memory->bytes());
    return std::all_of(asked.begin(), asked.end(), [&](auto e) { return heard->all[e].over; });
  };
  ASSERT_TRUE(world.run_until(all_over, patience));
  for (const auto e : asked) {
    const auto body = json::parse(heard->all[e].body);
    if (heard->all[e].status == 200U) {
      ++done;
    } else {
      EXPECT_EQ(heard->all[e].status, 429U);
      EXPECT_EQ(body["error"]["code"], "session_memory_limit") << body;
      ++refused;
    }
  }
  EXPECT_GE(done, 3U) << "one that has the sequence, and several that wait";
  EXPECT_GE(refused, 4U);
  EXPECT_GT(highest, held + 1'000) << "waiting edits are counted";
  EXPECT_LE(highest, most);
  EXPECT_EQ(memory->bytes(), held) << "and their memory is returned";
}

TEST_F(edit_sessions, read_no_more_than_the_model_has_room_for_when_that_turns_out_later) {
  std::string lines;
  for (int i = 100; i < 162; ++i) lines += std::to_string(i) + " line\n";
  const auto id = open(lines);
  const json wish = {{"path", "a.py"}, {"mode", "text"}, {"max_tokens", 8}};
  EXPECT_GT(call("POST", at(id, "/complete"), wish).second["usage"]["prompt_tokens"], 128);
  answers_of_model->set_tokens_max(128);  // as a worker's report does
  const auto [status, body] = call("POST", at(id, "/complete"), wish);
  EXPECT_EQ(status, 200U) << body;
  EXPECT_LE(body["usage"]["prompt_tokens"], 96);
  EXPECT_EQ(body["choices"][0]["text"], call("POST", at(open(lines), "/complete"), wish).second["choices"][0]["text"]);
}

TEST_F(edit_sessions, end_when_they_are_left_alone) {
  const auto id = open("a", {{"idle_seconds", 30}});
  world.run_for(microseconds{25'000'000});
  EXPECT_EQ(call("GET", at(id)).first, 200U);
  world.run_for(microseconds{25'000'000});
  EXPECT_EQ(call("GET", at(id)).first, 200U);  // the last call was 25 seconds ago
  world.run_for(microseconds{35'000'000});
  EXPECT_EQ(call("GET", at(id)).first, 404U);
}

TEST_F(edit_sessions, complete_in_order_what_the_text_was_when_each_was_asked_for) {
  const auto id = open("first");
  const auto one = ask("POST", at(id, "/complete"), {{"path", "a.py"}, {"max_tokens", 20}, {"mode", "text"}});
  const auto patched = ask("PATCH", at(id, "/files/a.py"), insertion(2, 0, 5, " second"));
  const auto two = ask("POST", at(id, "/complete"), {{"path", "a.py"}, {"max_tokens", 20}, {"mode", "text"}});
  EXPECT_EQ(await(patched).status, 200U);
  EXPECT_FALSE(heard->all[one].over);  // an edit does not wait for a completion
  const auto first = json::parse(await(one).body);
  const auto second = json::parse(await(two).body);
  EXPECT_EQ(first["usage"]["prompt_tokens"], tokenizer->encode("first").size());
  EXPECT_EQ(second["usage"]["prompt_tokens"], tokenizer->encode("first second").size());
}

TEST_F(edit_sessions, stream_when_asked_to) {
  const auto id = open("stream me");
  const json wish = {{"path", "a.py"}, {"max_tokens", 12}, {"mode", "text"}};
  json streamed = wish;
  streamed["stream"] = true;
  streamed["stream_options"] = {{"include_usage", true}};
  const std::string events = await(ask("POST", at(id, "/complete"), streamed)).body;
  EXPECT_TRUE(events.ends_with("data: [DONE]\n\n"));
  const std::string worth =
      "\"kv\":{\"exact\":" + std::to_string(tokenizer->encode("stream me").size()) + ",\"shifted\":0,";
  EXPECT_NE(events.find(worth), std::string::npos) << events;
  std::string joined;
  std::istringstream lines(events);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("data: {")) continue;
    const auto chunk = json::parse(line.substr(6));
    if (!chunk["choices"].empty()) joined += chunk["choices"][0]["text"];
  }
  EXPECT_EQ(joined, text_of(call("POST", at(id, "/complete"), wish).second));
}

TEST_F(edit_sessions, read_other_files_in_front_and_what_is_behind_in_the_middle) {
  const auto id = open("ab");
  call("PUT", at(id, "/files/b.py"), {{"text", "cd"}});
  const auto& w = tokenizer->vocab();
  const auto prompt_of = [&](const json& wish) {
    return call("POST", at(id, "/complete"), wish).second["usage"]["prompt_tokens"].get<std::size_t>();
  };
  const std::size_t headers = 2 + tokenizer->encode("a.py\n").size() + tokenizer->encode("b.py\n").size();
  EXPECT_TRUE(w.fim().complete() && w.fim().file_separator);
  EXPECT_EQ(prompt_of({{"path", "b.py"}, {"mode", "text"}, {"max_tokens", 1}}), headers + 4);
  EXPECT_EQ(prompt_of({{"path", "b.py"}, {"position", {{"line", 0}, {"character", 1}}}, {"max_tokens", 1}}),
            headers + 4 + 3);
  EXPECT_EQ(prompt_of({{"path", "b.py"}, {"position", {{"byte", 1}}}, {"mode", "text"}, {"max_tokens", 1}}),
            headers + 3);
}

TEST_F(edit_sessions, edit_as_a_chat_with_the_file_in_it_does) {
  const auto id = open("x = 1\n");
  const json how = {{"max_tokens", 30}, {"temperature", 0}};
  json edit = how;
  edit.update({{"path", "a.py"}, {"instruction", "Rename x."}});
  json chat = how;
  chat["messages"] = {{{"role", "user"}, {"content", "Rename x.\n```python\nx = 1\n```"}}};
  const auto [status, body] = call("POST", at(id, "/edit"), edit);
  ASSERT_EQ(status, 200U) << body;
  EXPECT_EQ(body["choices"], call("POST", "/v1/chat/completions", chat).second["choices"]);
}

TEST_F(edit_sessions, show_a_model_line_feeds_and_no_byte_order_mark_and_edit_no_zero_bytes) {
  const json edit = {{"path", "a.py"}, {"instruction", "Rename x."}, {"max_tokens", 30}, {"temperature", 0}};
  const auto plain = call("POST", at(open("x = 1\ny = 2\n"), "/edit"), edit).second;
  const auto windows = call("POST", at(open("\xEF\xBB\xBFx = 1\r\ny = 2\r\n"), "/edit"), edit).second;
  ASSERT_TRUE(plain.contains("choices")) << plain;
  EXPECT_EQ(windows["choices"], plain["choices"]);
  EXPECT_EQ(windows["usage"]["prompt_tokens"], plain["usage"]["prompt_tokens"]);
  const auto [status, refused] = call("POST", at(open(std::string("x\0y\n", 4)), "/edit"), edit);
  EXPECT_EQ(status, 400U);
  EXPECT_THAT(refused["error"]["message"].get<std::string>(),
              HasSubstr("a.py cannot be edited: it is not text in UTF-8"));
}

TEST_F(edit_sessions, go_on_after_a_client_left_in_the_middle) {
  const auto id = open("some text to go on with");
  const json wish = {{"path", "a.py"}, {"max_tokens", 60}, {"mode", "text"}};
  const auto expected = text_of(call("POST", at(open("some text to go on with"), "/complete"), wish).second);
  const auto left = ask("POST", at(id, "/complete"), wish);
  const auto waits = ask("POST", at(id, "/complete"), wish);
  const auto last = ask("POST", at(id, "/complete"), wish);
  world.run_for(microseconds{1'000});
  ASSERT_FALSE(heard->all[left].over) << "it must leave before it is answered";
  world.send(gateway_where, http_closed{left}, http_where);
  world.send(gateway_where, http_closed{waits}, http_where);
  EXPECT_EQ(text_of(json::parse(await(last).body)), expected);
  EXPECT_FALSE(heard->all[waits].over) << heard->all[waits].body;
}

/// A sequence of events from one seed: edits of all kinds, completions in between, clients that leave, and restarts.
class edit_sessions_at_random : public edit_sessions, public testing::WithParamInterface<std::uint64_t> {
 protected:
  edit_sessions_at_random() : edit_sessions(GetParam()) {}
};

TEST_P(edit_sessions_at_random, say_what_a_session_opened_a_moment_ago_says) {
  auto& chance = world.env();
  const std::string parts[] = {"x", "\n", " y = 1", "foo bar", "\u00e9", "  ", "1", "\r\n", "return"};
  std::string text = "def f(a):\n    return a + 1\n";
  const auto id =
      open(text, {{"cache", {{"healing", chance.below(2) == 0}}}});  // healing has no effect where all KV is exact
  std::int64_t version = 1;
  for (int round = 0; round < 12; ++round) {
    json edits = json::array();
    for (std::uint64_t n = 1 + chance.below(3); n > 0; --n) {
      const auto boundary = [&](std::size_t from) {
        while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
        return from;
      };
      const std::size_t begin = boundary(chance.below(text.size() + 1));
      const std::size_t end =
          boundary(std::min<std::size_t>(text.size(), begin + chance.below(text.size() > 90 ? 40 : 4)));
      std::string with;
      for (std::uint64_t k = chance.below(3); k > 0; --k) with += parts[chance.below(std::size(parts))];
      text.replace(begin, end - begin, with);
      edits.push_back({{"bytes", {{"start", begin}, {"end", end}}}, {"text", with}});
    }
    ++version;
    const auto [status, body] = call("PATCH", at(id, "/files/a.py"), {{"version", version}, {"edits", edits}});
    ASSERT_EQ(status, 200U) << body;
    ASSERT_EQ(call("GET", at(id, "/files/a.py")).second["text"], text);
    if (chance.below(3) == 0) world.run_for(microseconds{chance.below(20'000)});
    if (chance.below(4) == 0) world.restart(chance.below(2) == 0 ? manager_where : target_where);
    if (text.empty()) continue;

    std::size_t cursor = 1 + chance.below(text.size());
    while (cursor < text.size() && (static_cast<unsigned char>(text[cursor]) & 0xC0) == 0x80) ++cursor;
    static constexpr const char* modes[] = {"line", "text", "fim"};
    json wish = {{"path", "a.py"},
                 {"position", {{"byte", cursor}}},
                 {"max_tokens", 1 + chance.below(12)},
                 {"mode", modes[chance.below(3)]}};
    if (chance.below(2) == 0) wish.update({{"temperature", 0.7}, {"seed", chance.below(100)}});
    if (chance.below(3) == 0) {  // a client asks and leaves
      const auto left = ask("POST", at(id, "/complete"), wish);
      world.run_for(microseconds{chance.below(30'000)});
      world.send(gateway_where, http_closed{left}, http_where);
    }
    const auto [live_status, live] = call("POST", at(id, "/complete"), wish);
    ASSERT_EQ(live_status, 200U) << live;
    const auto fresh_id = open(text);
    const auto [fresh_status, fresh] = call("POST", at(fresh_id, "/complete"), wish);
    ASSERT_EQ(fresh_status, 200U) << fresh;
    EXPECT_EQ(live["choices"], fresh["choices"]) << "round " << round << ", text " << text;
    call("DELETE", at(fresh_id));
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, edit_sessions_at_random, testing::Range<std::uint64_t>(1, 1 + test::rounds(12, 2)));

/// Lines that are long enough to be cached between two edits.
std::string twelve_lines() {
  std::string text;
  for (int i = 0; i < 12; ++i) text += "line " + std::to_string(i) + " = x\n";
  return text;
}

TEST_F(edit_sessions, are_ready_before_they_are_asked) {
  const std::string text = twelve_lines();
  const auto id = open(text);
  const json wish = {{"path", "a.py"}, {"max_tokens", 1}};
  world.run_for(microseconds{1'000'000});
  const auto first = call("POST", at(id, "/complete"), wish).second;
  EXPECT_EQ(first["usage"]["redline"]["rows"], 1) << "the files were read when the session was opened";
  auto patch = insertion(2, 3, 0, "inserted\n");
  patch["cursor"] = {{"byte", text.size() + 9}};
  EXPECT_EQ(call("PATCH", at(id, "/files/a.py"), patch).second["kv"]["stale"], 0);
  world.run_for(microseconds{1'000'000});
  const auto second = call("POST", at(id, "/complete"), wish).second;
  EXPECT_EQ(second["usage"]["redline"]["rows"], 1) << "and read again when they changed";
  EXPECT_EQ(second["usage"]["redline"]["kv"]["stale"], 0);
}

TEST_F(edit_sessions, say_what_their_kv_is_worth_when_nothing_heals_it) {
  const std::string text = twelve_lines();
  const json wish = {{"path", "a.py"}, {"max_tokens", 1}, {"mode", "text"}};
  for (const std::string policy : {"pie", "conflict"}) {
    const auto id = open(text, {{"cache", {{"policy", policy}, {"healing", false}}}});
    call("POST", at(id, "/complete"), wish);
    auto patch = insertion(2, 3, 0, "inserted\n");
    patch["cursor"] = {{"byte", text.size() + 9}};
    const auto worth = call("PATCH", at(id, "/files/a.py"), patch).second["kv"];
    EXPECT_EQ(worth["exact"], tokenizer->encode(text.substr(0, text.find("line 3")) + "inserted\n").size());
    EXPECT_GT(worth["stale"], 60);
    const auto at_once = call("POST", at(id, "/complete"), wish).second;
    EXPECT_EQ(at_once["usage"]["redline"]["kv"], worth);
    EXPECT_LT(at_once["usage"]["redline"]["rows"], 20) << "the inserted tokens and the last token";
    world.run_for(microseconds{5'000'000});
    const auto shown = call("GET", at(id)).second;
    EXPECT_EQ(shown["kv"], worth);
    EXPECT_EQ(shown["cache"], (json{{"policy", policy}, {"healing", false}, {"healed", 0}}));
    EXPECT_EQ(call("POST", at(id, "/complete"), wish).second["usage"]["redline"]["kv"], worth);
  }
}

/// A mode, and the cursor position that the client reports: none, at the change, or at its next completion.
class edits_above_the_place : public edit_sessions,
                              public testing::WithParamInterface<std::tuple<std::string, std::string>> {};

TEST_P(edits_above_the_place, leave_the_kv_of_what_follows_them) {
  const auto& [mode, cursor] = GetParam();
  std::string text = twelve_lines();
  const auto id = open(text, {{"cache", {{"policy", "pie"}, {"healing", false}}}});
  const auto complete = [&](std::size_t byte) {
    const json wish = {{"path", "a.py"}, {"max_tokens", 1}, {"mode", mode}, {"position", {{"byte", byte}}}};
    const auto [status, answer] = call("POST", at(id, "/complete"), wish);
    EXPECT_EQ(status, 200U) << answer;
    return answer["usage"]["redline"];
  };
  complete(text.size());
  std::int64_t version = 1;
  for (const std::uint32_t line : {7U, 3U, 9U}) {
    auto patch = insertion(++version, line, 0, "new\n");
    std::size_t change = 0;
    for (std::uint32_t i = 0; i < line; ++i) change = text.find('\n', change) + 1;
    text.insert(change, "new\n");
    if (cursor == "change") patch["cursor"] = {{"byte", change + 4}};
    if (cursor == "place") patch["cursor"] = {{"byte", text.size()}};
    const auto [status, body] = call("PATCH", at(id, "/files/a.py"), patch);
    ASSERT_EQ(status, 200U) << body;
    world.run_for(microseconds{1'000'000});
    const auto used = complete(text.size());
    EXPECT_LT(used["rows"], 8) << "line " << line;
    EXPECT_GT(used["kv"]["stale"], 10) << "the tokens after the change were computed before it";
  }
}

INSTANTIATE_TEST_SUITE_P(modes, edits_above_the_place,
                         testing::Combine(testing::Values("line", "text", "fim"),
                                          testing::Values("nowhere", "change", "place")),
                         [](const auto& of) { return std::get<0>(of.param) + "_" + std::get<1>(of.param); });

/// A sequence of events from one seed: edits at random positions under a policy that keeps the KV after them. Whatever
/// happens, the answer soon equals that of a session opened just before.
class edit_sessions_that_heal : public edit_sessions, public testing::WithParamInterface<std::uint64_t> {
 protected:
  edit_sessions_that_heal() : edit_sessions(GetParam()) {}

  void disturb() {
    auto& chance = world.env();
    if (chance.below(3) == 0) world.run_for(microseconds{chance.below(40'000)});
    if (chance.below(6) == 0) world.restart(chance.below(2) == 0 ? manager_where : target_where);
    if (chance.below(4) == 0) {  // another client's answer takes pages and slots
      ask("POST", "/v1/completions",
          {{"prompt", twelve_lines() + std::to_string(chance.below(9))}, {"max_tokens", 20}});
    }
  }
};

TEST_P(edit_sessions_that_heal, are_usable_at_once_and_exact_soon) {
  auto& chance = world.env();
  std::string text = twelve_lines();
  const auto id = open(text, {{"cache", {{"policy", GetParam() % 3 == 0 ? "conflict" : "pie"}}}});
  std::uint64_t stale_count = 0;
  for (std::int64_t version = 2; version < 9; ++version) {
    const std::size_t begin = chance.below(text.size());
    const std::size_t end = std::min<std::size_t>(text.size(), begin + chance.below(8));
    const std::string with = chance.below(2) == 0 && text.size() < 170 ? "new = 1\n" : "";
    text.replace(begin, end - begin, with);
    const json edit = {{"bytes", {{"start", begin}, {"end", end}}}, {"text", with}};
    const json patch = {{"version", version}, {"edits", {edit}}, {"cursor", {{"byte", text.size()}}}};
    const auto [status, body] = call("PATCH", at(id, "/files/a.py"), patch);
    ASSERT_EQ(status, 200U) << body;
    stale_count += body["kv"]["stale"].get<std::uint64_t>();
    json wish = {{"path", "a.py"}, {"max_tokens", 10}, {"mode", "text"}};
    if (chance.below(2) == 0) wish.update({{"temperature", 0.7}, {"seed", chance.below(100)}});
    disturb();
    if (chance.below(2) == 0) {
      const auto [early, answer] = call("POST", at(id, "/complete"), wish);
      ASSERT_EQ(early, 200U) << answer;
      const auto& kv = answer["usage"]["redline"]["kv"];
      EXPECT_EQ(kv["exact"].get<std::size_t>() + kv["stale"].get<std::size_t>(), answer["usage"]["prompt_tokens"]);
      disturb();
    }
    if (chance.below(2) == 0) continue;  // the next edit comes while the KV heals
    for (int i = 0; i < 100 && call("GET", at(id)).second["kv"]["stale"] != 0; ++i)
      world.run_for(microseconds{500'000});
    const auto [live_status, live] = call("POST", at(id, "/complete"), wish);
    ASSERT_EQ(live_status, 200U) << live;
    EXPECT_EQ(live["usage"]["redline"]["kv"]["stale"], 0);
    const auto fresh_id = open(text);
    EXPECT_EQ(live["choices"], call("POST", at(fresh_id, "/complete"), wish).second["choices"])
        << "version " << version;
    call("DELETE", at(fresh_id));
  }
  EXPECT_GT(stale_count, 0U);
}

INSTANTIATE_TEST_SUITE_P(seeds, edit_sessions_that_heal, testing::Range<std::uint64_t>(1, 1 + test::rounds(12, 2)));

}  // namespace
}  // namespace redline::actors
