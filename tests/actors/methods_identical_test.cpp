// Every drafting method gives the bytes of plain decoding, for many files at once through the real actors, threads and
// transport of one process, with the demonstration models.

#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <map>
#include <nlohmann/json.hpp>

#include "actors/engine.hpp"
#include "actors/session.hpp"
#include "tests/support/rounds.hpp"
#include "tests/support/test_data.hpp"

namespace redline::actors {
namespace {

constexpr std::size_t files_max = test::rounds(36, 3);
constexpr std::uint32_t tokens_max = test::rounds(160, 40);

constexpr draft::method methods[] = {draft::method::regular, draft::method::lookup, draft::method::assisted,
                                     draft::method::blazedit};

struct task {
  std::string file;
  std::string instruction;
};

/// Real files when the data collection is there, else small ones made up from parts.
std::vector<task> tasks() {
  std::vector<task> out;
  if (const auto path = test::data_path("edits/quixbugs_python.jsonl")) {
    std::ifstream in(*path);
    for (std::string line; out.size() < files_max && std::getline(in, line);) {
      const auto row = nlohmann::json::parse(line);
      out.push_back({row.at("before"), row.at("instruction")});
    }
    return out;
  }
  const char* names[] = {"load", "save", "total", "merge", "count", "split"};
  const char* bodies[] = {"    return sum(row[\"n\"] for row in a)\n", "    for row in a:\n        b.append(row)\n    return b\n",
                          "    if a > 10:\n        return b\n    return a\n"};
  for (std::size_t i = 0; out.size() < files_max; ++i) {
    std::string file = "import json\n\nLIMIT = " + std::to_string(i + 3) + "\n";
    for (std::size_t j = 0; j <= i % 4; ++j) {
      file += "\n\ndef " + std::string(names[(i + j) % 6]) + "(a, b):\n" + bodies[(i * 5 + j) % 3];
    }
    out.push_back({file, i % 2 == 0 ? "Change the number " + std::to_string(i + 3) + " to 64."
                                    : "Rename the function `" + std::string(names[i % 6]) + "` to `run`."});
  }
  return out;
}

struct next_job {
  static constexpr actor::message_id id{0x0a01};
  static constexpr std::string_view name = "next_job";
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// Opens sessions, some at a time, and gathers what they say.
class crowd final : public actor::actor_of<crowd> {
 public:
  using accepts = actor::protocol<next_job, session_text, session_finished>;
  struct plan {
    std::vector<generation_request> jobs;
    std::function<session_partners(draft::method, actor::address)> partners;
    std::shared_ptr<const text::tokenizer> words;
    std::size_t at_once = 12;
    std::map<session_id, std::vector<token>> tokens;
    std::map<session_id, session_finished> finished;
    std::promise<void> done;
  };
  crowd(actor::actor_context& context, std::shared_ptr<plan> p) : actor_of(context), plan_(std::move(p)) {}

  void on(const next_job&) {
    for (std::size_t i = 0; i < plan_->at_once; ++i) open_one();
  }
  void on(const session_text& m) {
    auto& t = plan_->tokens[m.session];
    t.insert(t.end(), m.tokens.begin(), m.tokens.end());
  }
  void on(const session_finished& m) {
    plan_->finished[m.session] = m;
    if (plan_->finished.size() == plan_->jobs.size()) plan_->done.set_value();
    else open_one();
  }

 private:
  void open_one() {
    if (opened_ == plan_->jobs.size()) return;
    const auto& job = plan_->jobs[opened_++];
    auto work = generation::make(job, plan_->words);
    REDLINE_ASSERT(work.has_value(), "the test's requests are good");
    context().spawn<session>("session", {1024, 1024}, std::move(*work),
                             plan_->partners(job.draft.how, context().self()));
  }
  std::shared_ptr<plan> plan_;
  std::size_t opened_ = 0;
};

void compare_methods(float temperature) {
  engine_options options;
  options.target_path = test::source_path("bench/demo_models/demo-target.gguf");
  options.draft_path = test::source_path("bench/demo_models/demo-draft.gguf");
  options.threads = 2;
  options.scheduling.limits = {.running_max = 8, .waiting_max = 64};
  auto e = engine::create(std::move(options));
  ASSERT_TRUE(e) << e.error().describe();
  auto p = std::make_shared<crowd::plan>();
  p->words = (*e)->words();
  p->partners = [&](draft::method how, actor::address client) { return *(*e)->partners_for(how, client); };
  const auto all = tasks();
  std::uint64_t id = 1;
  for (const auto& t : all) {
    const std::string prompt = "<|im_start|>user\n" + t.instruction + "\n```python\n" + t.file +
                               "```<|im_end|>\n<|im_start|>assistant\n";
    for (const auto how : methods) {
      generation_request g;
      g.session = {id++};
      g.prompt = (*e)->words()->encode(prompt, {.parse_special = true});
      g.tokens_max = tokens_max;
      g.context_max = (*e)->context_max();
      g.sampling.temperature = temperature;
      g.sampling.seed = 7;
      g.draft.how = how;
      p->jobs.push_back(std::move(g));
    }
  }
  const auto where = (*e)->io().add<crowd>(place::client, "crowd", {4096, 4096}, [p](actor::actor_context& c) {
    return std::make_unique<crowd>(c, p);
  });
  ASSERT_TRUE((*e)->start());
  (*e)->send(where.where, next_job{});
  ASSERT_EQ(p->done.get_future().wait_for(std::chrono::minutes(4)), std::future_status::ready);
  (*e)->stop();

  session_stats sums[4];
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& plain = p->tokens[{i * 4 + 1}];
    for (std::size_t m = 0; m < 4; ++m) {
      const session_id session{i * 4 + m + 1};
      EXPECT_NE(p->finished[session].reason, finish_reason::failed);
      EXPECT_EQ(p->tokens[session], plain) << "file " << i << ", method " << m;
      sums[m].target_passes += p->finished[session].stats.target_passes;
      sums[m].accepted += p->finished[session].stats.accepted;
    }
  }
  // Not vacuous: the drafting methods did draft, and saved passes.
  EXPECT_EQ(sums[0].accepted, 0u);
  for (std::size_t m = 1; m < 4; ++m) {
    EXPECT_GT(sums[m].accepted, 0u);
    EXPECT_LT(sums[m].target_passes, sums[0].target_passes);
  }
  std::printf("%zu files, target passes: regular %u, lookup %u, assisted %u, blazedit %u\n", all.size(), sums[0].target_passes,
              sums[1].target_passes, sums[2].target_passes, sums[3].target_passes);
}

TEST(methods, greedy_output_is_the_same_with_every_method) { compare_methods(0); }
TEST(methods, sampled_output_is_the_same_with_every_method) { compare_methods(0.7F); }

}  // namespace
}  // namespace redline::actors
