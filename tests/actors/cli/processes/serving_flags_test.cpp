#include "actors/cli/processes/serving_flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <map>
#include <regex>

#include "actors/cli/processes/process_commands.hpp"
#include "actors/http/gateway.hpp"
#include "actors/node/engine.hpp"
#include "tests/support/test_data.hpp"

namespace redline::actors::cli {
namespace {

using ::testing::HasSubstr;

/// Parses the words after `redline serve` or `redline worker` into engine options.
template<class Flags>
result<engine_options> read(Flags& f, void (*add)(command, Flags&), std::vector<std::string> words) {
  CLI::App app;
  add(app, f);
  std::reverse(words.begin(), words.end());
  app.parse(std::move(words));
  return to_engine_options(f);
}
const std::string model = test::source_path("bench/demo_models/demo-target.gguf");
const std::string file_name = "demo-target";

result<engine_options> read_serve(std::vector<std::string> words) {
  serve_flags f;
  words.insert(words.end(), {"--model", model});
  return read(f, add_serve_flags, std::move(words));
}
result<engine_options> read_worker(const std::string& role, std::vector<std::string> words) {
  worker_flags f;
  words.insert(words.begin(), {"--model", model, "--role", role, "--join", "ipc://x"});
  return read(f, add_worker_flags, std::move(words));
}
const std::vector<std::string> remote_target = {"--remote", "target", "--bridge", "ipc://x"};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void expect_same(const scheduler_options& a, const scheduler_options& b) {
  EXPECT_EQ(a.policy, b.policy);
  EXPECT_EQ(a.sharing, b.sharing);
  EXPECT_EQ(a.limits.running_max, b.limits.running_max);
  EXPECT_EQ(a.limits.waiting_max, b.limits.waiting_max);
  EXPECT_EQ(a.budget.rows_max, b.budget.rows_max);
  EXPECT_EQ(a.budget.prompt_chunk_rows_max, b.budget.prompt_chunk_rows_max);
  EXPECT_EQ(a.budget.time_max, b.budget.time_max);
}

TEST(serve_flags, takes_the_words_that_other_commands_make_of_their_options) {
  const model_flags models{.model = model,
                           .draft = test::source_path("bench/demo_models/demo-draft.gguf"),
                           .draft_context = 99,
                           .numerics = "float",
                           .kv = "f32",
                           .threads = 3,
                           .context = 512,
                           .kv_mib = 7,
                           .draft_length = "whole"};
  const draft::draft_options drafts{.how = draft::method::blazedit,
                                    .max_matching_ngram_size = 3,
                                    .lookup_tokens_max = 4,
                                    .assisted_tokens_max = 5,
                                    .confidence_min = 0.3F,
                                    .micro_draft_tokens = 6,
                                    .max_num_run = 40};
  serve_flags f;
  const auto read_back = read(f, add_serve_flags, words_of(models) + words_of(drafts));
  ASSERT_TRUE(read_back) << read_back.error().context;
  const auto given = *to_engine_options(models);
  EXPECT_EQ(read_back->target_path, given.target_path);
  EXPECT_EQ(read_back->draft_path, given.draft_path);
  EXPECT_EQ(read_back->draft_context, 99u);
  EXPECT_EQ(read_back->numerics, given.numerics);
  EXPECT_EQ(read_back->kv, given.kv);
  EXPECT_EQ(read_back->threads, 3u);
  EXPECT_EQ(read_back->context_max, 512u);
  EXPECT_EQ(read_back->kv_bytes_max, std::uint64_t{7} << 20);
  EXPECT_TRUE(read_back->whole_drafts);
  EXPECT_EQ(*to_draft_options(f.method, true), drafts);
}

TEST(scheduling_flags, have_the_same_defaults_in_one_process_in_a_worker_and_in_the_scheduler) {
  expect_same(read_serve({})->scheduling, scheduler_options{});
  expect_same(read_worker("target", {})->scheduling, scheduler_options{});
  EXPECT_EQ(scheduler_options{}.budget.time_max, microseconds{80'000});
}

TEST(scheduling_flags, reach_the_scheduler_of_serve_and_of_a_worker) {
  const std::vector<std::string> words = {
      "--policy",   "fair_share", "--prefix-sharing",    "all", "--running-max", "3", "--waiting-max", "5",
      "--rows-max", "128",        "--prompt-chunk-rows", "32",  "--step-ms",     "70"};
  for (const auto& options : {read_serve(words), read_worker("target", words)}) {
    ASSERT_TRUE(options) << options.error().describe();
    const scheduler_options& s = options->scheduling;
    EXPECT_EQ(s.policy, "fair_share");
    EXPECT_EQ(s.sharing, prefix_sharing::all);
    EXPECT_EQ(s.limits.running_max, 3U);
    EXPECT_EQ(s.limits.waiting_max, 5U);
    EXPECT_EQ(s.budget.rows_max, 128U);
    EXPECT_EQ(s.budget.prompt_chunk_rows_max, 32U);
    EXPECT_EQ(s.budget.time_max, microseconds{70'000});
  }
}

TEST(serve_flags, reach_the_engine) {
  const auto options = read_serve({"--draft", model, "--draft-context", "512", "--kv", "bf16", "--threads", "3",
                                   "--context", "2048", "--kv-mib", "64", "--draft-length", "whole"});
  ASSERT_TRUE(options) << options.error().describe();
  EXPECT_EQ(options->target_path, model);
  EXPECT_EQ(options->draft_path, model);
  EXPECT_EQ(options->draft_context, 512U);
  EXPECT_EQ(options->kv, model::kv_type::bf16);
  EXPECT_EQ(options->threads, 3U);
  EXPECT_EQ(options->context_max, 2048U);
  EXPECT_EQ(options->kv_bytes_max, std::uint64_t{64} << 20);
  EXPECT_TRUE(options->whole_drafts);
  EXPECT_TRUE(options->roles.front && options->roles.target && options->roles.draft);
}

TEST(serve_flags, say_which_models_are_elsewhere) {
  const auto options = read_serve({"--remote", "target,draft", "--bridge", "tcp://*:1", "--insecure-plaintext"});
  ASSERT_TRUE(options) << options.error().describe();
  EXPECT_FALSE(options->roles.target || options->roles.draft);
  EXPECT_TRUE(options->roles.front);
  ASSERT_TRUE(options->broker);
  EXPECT_EQ(options->broker->listens, std::vector<std::string>{"tcp://*:1"});
  EXPECT_TRUE(options->broker->insecure_plaintext);
}

TEST(serve_flags, reach_the_gateway) {
  serve_flags f;
  ASSERT_TRUE(read(f, add_serve_flags,
                   {"--model",
                    model,
                    "--accept-any-model",
                    "--compat",
                    "vllm",
                    "--running-max",
                    "3",
                    "--waiting-max",
                    "5",
                    "--requests-mib",
                    "300",
                    "--live-sessions-max",
                    "40",
                    "--live-mib",
                    "8",
                    "--live-idle-seconds",
                    "60",
                    "--eviction",
                    "lazy",
                    "--n-keep",
                    "7"}));
  gateway_services s;
  set_gateway_limits(f, s);
  EXPECT_TRUE(s.accept_any_model);
  EXPECT_TRUE(s.speaks_vllm);
  EXPECT_EQ(s.sessions_max, 8U);
  EXPECT_EQ(s.request_limits.bytes_max, 300U << 20);
  EXPECT_EQ(s.request_limits.tenant_bytes_max, 300U << 20);
  EXPECT_EQ(s.editing.sessions_max, 40U);
  EXPECT_EQ(s.editing.tenant_sessions_max, 40U);
  EXPECT_EQ(s.editing.bytes_max, 8U << 20);
  EXPECT_EQ(s.editing.tenant_bytes_max, 8U << 20);
  EXPECT_EQ(s.editing.idle_seconds_max, 60);
  EXPECT_EQ(s.eviction_defaults.policy, kv::eviction_policy::lazy);
  EXPECT_EQ(s.eviction_defaults.n_keep, 7U);

  s.keys =
      std::make_shared<key_ring>(*api_keys::load(std::vector<std::string>{"a:0123456789abcdef0123456789abcdef"}, ""));
  set_gateway_limits(f, s);
  EXPECT_EQ(s.editing.tenant_sessions_max, 10U);
  EXPECT_EQ(s.editing.tenant_bytes_max, 2U << 20);
}

TEST(worker_flags, run_one_model) {
  const auto target = read_worker("target", {"--context", "2048"});
  EXPECT_EQ(target->target_path, model);
  EXPECT_EQ(target->context_max, 2048U);
  EXPECT_TRUE(target->roles.target && !target->roles.draft && !target->roles.front);
  EXPECT_EQ(target->bridge.joins, std::vector<std::string>{"ipc://x"});
  const auto draft = read_worker("draft", {"--draft-context", "512"});
  EXPECT_EQ(draft->draft_path, model);
  EXPECT_EQ(draft->target_path, "");
  EXPECT_EQ(draft->draft_context, 512U);
  EXPECT_TRUE(draft->roles.draft && !draft->roles.target && !draft->roles.front);
  const auto node = read_worker("node", {"--draft", model, "--join", "ipc://y", "--alias", "fast", "--alias", "old"});
  ASSERT_TRUE(node) << node.error().describe();
  EXPECT_TRUE(node->roles.draft && node->roles.target && !node->roles.front);
  EXPECT_EQ(node->bridge.joins, (std::vector<std::string>{"ipc://x", "ipc://y"}));
  EXPECT_EQ(node->model_name, "fast");
  EXPECT_EQ(node->aliases, (std::vector<std::string>{"old", file_name})) << "the file's name still works";
  const auto plain = read_worker("target", {"--alias", file_name + ":temperature=0"});
  EXPECT_EQ(plain->model_name, file_name);
  EXPECT_EQ(plain->aliases, (std::vector<std::string>{file_name + ":temperature=0"}));
}

TEST(serving_flags, are_refused_where_they_have_no_effect) {
  const auto expect_refused = [](const result<engine_options>& read, const std::string& why) {
    ASSERT_FALSE(read) << why;
    EXPECT_EQ(read.error().code, errc::invalid_argument);
    EXPECT_THAT(read.error().context, HasSubstr(why));
  };
  expect_refused(read_serve({"--remote", "target"}), "--remote requires --bridge");
  EXPECT_TRUE(read_serve({"--bridge", "ipc://x"})->roles.target) << "it works as well";
  expect_refused(read_serve({"--pool-patience", "3"}), "without --bridge");
  expect_refused(read_worker("node", {}), "--role node requires --draft");
  expect_refused(read_worker("target", {"--draft", model}), "use --role node to run both");
  expect_refused(read_serve(remote_target + std::vector<std::string>{"--step-ms", "50", "--policy", "fair_share"}),
                 "--policy, --step-ms: has no effect with --remote target");
  expect_refused(read_serve(remote_target + std::vector<std::string>{"--draft-length", "whole"}),
                 "redline worker --role target");
  expect_refused(read_serve(remote_target + std::vector<std::string>{"--kv", "f32"}), "runs no model");
  expect_refused(read_serve({"--remote", "draft", "--bridge", "ipc://x", "--draft-context", "100"}),
                 "redline worker --role draft");
  expect_refused(read_serve({"--insecure-plaintext"}), "without --bridge");
  expect_refused(read_worker("draft", {"--step-ms", "50"}), "--step-ms: has no effect with --role draft");
  expect_refused(read_worker("target", {"--draft-context", "100"}),
                 "--draft-context: has no effect with --role target");
  EXPECT_TRUE(read_serve(remote_target + std::vector<std::string>{"--step-ms", "80", "--waiting-max", "3"}));
  EXPECT_TRUE(read_serve(remote_target + std::vector<std::string>{"--draft", model, "--kv", "f32"}));
}

TEST(serving_flags, parse_the_address_to_listen_on) {
  EXPECT_EQ(parse_listen_address("0.0.0.0:80")->host, "0.0.0.0");
  EXPECT_EQ(parse_listen_address("[::1]:65535")->port, 65535);
  EXPECT_EQ(parse_listen_address(":0")->host, "127.0.0.1");
  for (const char* bad : {"", "host", "host:", "host:65536", "host:8x", "host:-1"}) {
    EXPECT_EQ(parse_listen_address(bad).error().code, errc::invalid_argument) << bad;
  }
}

/// The keys of each section of deploy/redline.toml with their values; commented ones have none.
using section = std::map<std::string, std::optional<std::string>>;
std::map<std::string, section> sections_of_the_example() {
  std::map<std::string, section> all;
  std::string name;
  std::ifstream file(test::source_path("deploy/redline.toml"));
  const std::regex heading(R"(^\[(\w+)\]$)"), key(R"re(^(# )?([a-z][a-z-]*) = ("[^"]*"|\S+)( +# .+)?$)re");
  for (std::string line; std::getline(file, line);) {
    std::smatch m;
    if (std::regex_match(line, m, heading)) {
      name = m[1];
    } else if (std::regex_match(line, m, key)) {
      EXPECT_TRUE(m[4].matched) << "no explanation: " << line;
      std::string value = m[3];
      if (value.front() == '"') value = value.substr(1, value.size() - 2);
      all[name][m[2]] = m[1].matched ? std::nullopt : std::optional(value);
    } else {
      EXPECT_TRUE(line.empty() || line.starts_with("#")) << "not understood: " << line;
    }
  }
  return all;
}

TEST(example_configuration, names_every_option_with_its_default) {
  const auto example = sections_of_the_example();
  CLI::App app;
  int exit_code = 0;
  add_serve(app, exit_code);
  add_worker(app, exit_code);
  add_gateway(app, exit_code);
  add_broker(app, exit_code);
  for (const char* name : {"serve", "worker", "gateway", "broker"}) {
    ASSERT_TRUE(example.contains(name));
    section left = example.at(name);
    for (const CLI::Option* option : app.get_subcommand(name)->get_options()) {
      const std::string key = option->get_lnames().empty() ? "" : option->get_lnames().front();
      if (key == "help" || option->get_group().empty()) continue;  // hidden options are for tests
      ASSERT_TRUE(left.contains(key)) << "deploy/redline.toml, [" << name << "]: --" << key << " is missing";
      const bool is_flag = option->get_items_expected_max() == 0;
      const std::string usual = is_flag ? "false" : option->get_default_str();
      EXPECT_EQ(left[key].value_or(""), usual) << "deploy/redline.toml, [" << name << "]: " << key;
      left.erase(key);
    }
    for (const auto& [key, value] : left) ADD_FAILURE() << "[" << name << "]: no option --" << key;
  }
}

}  // namespace
}  // namespace redline::actors::cli
