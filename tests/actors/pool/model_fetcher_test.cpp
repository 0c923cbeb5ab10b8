// Workers with header servers and a gateway's fetcher, over wires that delay and lose messages.

#include "actors/pool/model_fetcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "actors/pool/header_server.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/size_limits.hpp"
#include "runtime/gguf/file_digest.hpp"
#include "tests/support/actor_world.hpp"
#include "tests/support/tiny_model.hpp"
#include "transport/zmq/zmq_fabric.hpp"

namespace redline::actors {
namespace {

using testing::ElementsAre;

constexpr auto fetcher_where = actor::make_address(1, 1, 11);
constexpr auto manager_where = actor::make_address(2, 1, 4);
constexpr auto client_where = actor::make_address(1, 1, 12);
constexpr microseconds second{1'000'000};

actor::address server_of(std::uint16_t process) { return actor::make_address(process, 1, 10); }

class model_fetcher_test : public testing::Test {
 protected:
  void SetUp() override {
    configure_log(log_level::off, log_format::text);
    auto& io = world.add_worker(1, 1);
    model_fetcher_options options{
        .shelf = shelf, .partners_for = [](const process_card& card, draft::method, actor::address client) {
          return result<session_partners>(
              session_partners{.manager = {{manager_where.value + card.model}}, .client = client});
        }};
    io.add<model_fetcher>(11, "model fetcher", roomy,
                          [options](actor::actor_context& c) { return std::make_unique<model_fetcher>(c, options); });
    world.on_wire = [this](actor::frame& f) {
      if (f.head.id == read_header::id) ++asked[actor::process_of(f.head.to)];
      return on_wire ? on_wire(f) : true;
    };
  }

  /// Adds a worker process with a header server.
  void add_server(std::uint16_t process, const std::string& header) {
    world.add_worker(process, 1)
        .add<header_server>(10, "header server", roomy,
                            [h = std::make_shared<const std::string>(header)](actor::actor_context& c) {
                              return std::make_unique<header_server>(c, h);
                            });
  }
  static process_card card_of(const test::tiny_model& model, const std::string& name) {
    const auto file = model.file();
    return {.name = name,
            .has_target = true,
            .model = gguf::compute_file_digest(*file),
            .header = gguf::compute_header_digest(file->copy_header()),
            .vocabulary = (*text::tokenizer::from_file(*file))->digest(),
            .numerics = "exact",
            .context = 128};
  }
  void fetch(const process_card& card, std::uint16_t process) {
    world.send(fetcher_where, fetch_model{card, server_of(process)});
  }
  bool is_served(const std::string& name, microseconds patience = 10 * second) {
    return world.run_until([&] { return shelf->snapshot()->find(name) != nullptr; }, patience);
  }
  /// Changes the parts that this process sends.
  void corrupt_parts_of(std::uint16_t process, std::function<void(header_part&)> how) {
    on_wire = [=](actor::frame& f) {
      if (f.head.id != header_part::id || actor::process_of(f.head.from) != process) return true;
      auto part = *actor::decode<header_part>(f.body);
      how(part);
      f.body = actor::encode(part);
      return true;
    };
  }

  static constexpr actor::mailbox_limits roomy{1024, 1024};
  test::actor_world world{1};
  std::shared_ptr<model_shelf> shelf = std::make_shared<model_shelf>();
  std::map<std::uint16_t, int> asked;  // the read_header messages sent, by process
  std::function<bool(actor::frame&)> on_wire;
  test::tiny_model tiny = test::make_tiny_model({.context = 128});
  std::string own_header = tiny.file()->copy_header();
  process_card own_card = card_of(tiny, "coder");
};

TEST_F(model_fetcher_test, makes_a_worker_s_model_of_its_header) {
  add_server(2, own_header);
  own_card.aliases = {"gpt-4o"};
  fetch(own_card, 2);
  ASSERT_TRUE(is_served("coder"));
  const auto model = shelf->snapshot()->find("gpt-4o");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->digest, own_card.model);
  EXPECT_EQ(model->fingerprint, make_fingerprint(own_card.model, numerics_id("exact")));
  EXPECT_EQ(model->answers->tokenizer()->digest(), own_card.vocabulary);
  EXPECT_EQ(model->answers->context_max(), 128U);
  const auto own = *text::tokenizer::from_file(*tiny.file());
  EXPECT_EQ(model->prompts->text("def f(x):"), own->encode("def f(x):"));
  const auto partners = model->answers->partners_for(draft::method::regular, client_where);
  ASSERT_TRUE(partners);
  EXPECT_EQ(partners->manager.where.value, manager_where.value + own_card.model);
  EXPECT_TRUE(model->answers->rules_for({.format = grammar::grammar_text{.text = "{}"}})) << "with grammars";
}

TEST_F(model_fetcher_test, fetches_a_long_header_in_parts_through_a_bad_network) {
  tiny.metadata["general.description"] = std::string(3 * sizes::header_part_bytes_max, 'x');
  const auto long_card = card_of(tiny, "long");
  add_server(2, tiny.file()->copy_header());
  std::uint64_t frames = 0;
  on_wire = [&](actor::frame& f) { return actor::node_of(f.head.to) == actor::node_of(f.head.from) || ++frames % 3; };
  fetch(long_card, 2);
  ASSERT_TRUE(is_served("long", 600 * second));
  EXPECT_GE(asked[2], 4);
}

TEST_F(model_fetcher_test, serves_two_models_of_two_workers) {
  auto other = test::make_tiny_model({.context = 128});
  test::add_program_tokens(other);
  add_server(2, own_header);
  add_server(3, other.file()->copy_header());
  fetch(own_card, 2);
  fetch(card_of(other, "writer"), 3);
  ASSERT_TRUE(is_served("coder"));
  ASSERT_TRUE(is_served("writer"));
  const auto models = shelf->snapshot();
  EXPECT_NE(models->find("coder")->answers->tokenizer()->encode("<copy"),
            models->find("writer")->answers->tokenizer()->encode("<copy"));
}

TEST_F(model_fetcher_test, asks_another_worker_when_one_cannot_be_reached_or_is_silent) {
  add_server(3, own_header);
  add_server(4, own_header);
  on_wire = [](actor::frame& f) { return actor::process_of(f.head.to) != 3 || f.head.id != read_header::id; };
  fetch(own_card, 2);  // this process does not exist
  fetch(own_card, 3);  // its requests are lost
  fetch(own_card, 4);
  ASSERT_TRUE(is_served("coder"));
  EXPECT_EQ(asked[3], 2) << "one request more than it answered";
  EXPECT_EQ(asked[4], 1);
}

TEST_F(model_fetcher_test, takes_a_header_from_one_worker_and_not_half_from_another) {
  tiny.metadata["general.description"] = std::string(2 * sizes::header_part_bytes_max, 'x');
  const auto long_card = card_of(tiny, "long");
  add_server(2, tiny.file()->copy_header());
  add_server(3, tiny.file()->copy_header());
  std::vector<std::pair<std::uint16_t, std::uint64_t>> offsets;
  on_wire = [&](actor::frame& f) {
    if (f.head.id != read_header::id) return true;
    const auto process = actor::process_of(f.head.to);
    const auto offset = actor::decode<read_header>(f.body)->offset;
    offsets.emplace_back(process, offset / sizes::header_part_bytes_max);
    return process != 2 || offset == 0;  // process 2 dies after the first part
  };
  fetch(long_card, 2);
  fetch(long_card, 3);
  ASSERT_TRUE(is_served("long", 60 * second));
  using at = std::pair<std::uint16_t, std::uint64_t>;
  EXPECT_THAT(offsets, ElementsAre(at{2, 0}, at{2, 1}, at{2, 1}, at{3, 0}, at{3, 1}, at{3, 2}));
}

TEST_F(model_fetcher_test, waits_for_the_only_worker_to_come_back) {
  fetch(own_card, 2);
  EXPECT_FALSE(is_served("coder", 5 * second));
  add_server(2, own_header);
  EXPECT_TRUE(is_served("coder"));
}

TEST_F(model_fetcher_test, refuses_bytes_with_another_digest_and_never_asks_their_worker_again) {
  add_server(2, own_header);
  add_server(3, own_header);
  corrupt_parts_of(2, [](header_part& part) { part.bytes.back() ^= 1; });
  fetch(own_card, 2);
  EXPECT_FALSE(is_served("coder", 5 * second));
  EXPECT_EQ(asked[2], 1);
  fetch(own_card, 2);
  world.run_for(5 * second);
  EXPECT_EQ(asked[2], 1);
  fetch(own_card, 3);
  EXPECT_TRUE(is_served("coder"));
}

TEST_F(model_fetcher_test, refuses_parts_that_cannot_be) {
  const std::function<void(header_part&)> lies[] = {
      [](header_part& part) { part.bytes.clear(); },
      [](header_part& part) { part.total = sizes::header_bytes_max + 1; },
      [](header_part& part) { part.total = 1; },
      [](header_part& part) { part.bytes.resize(10); },
      [](header_part& part) { part.bytes += "more"; },
      [](header_part& part) { part.total = ~std::uint64_t{0}; },
  };
  std::uint16_t process = 2;
  for (const auto& lie : lies) {
    add_server(process, own_header);
    corrupt_parts_of(process, lie);
    fetch(own_card, process);
    EXPECT_FALSE(is_served("coder", 3 * second));
    EXPECT_EQ(asked[process], 1) << process;
    ++process;
  }
  add_server(process, own_header);
  fetch(own_card, process);
  EXPECT_TRUE(is_served("coder"));
}

TEST_F(model_fetcher_test, listens_to_nobody_that_it_did_not_ask) {
  add_server(2, own_header);
  bool is_answered = false;
  on_wire = [&](actor::frame& f) {
    if (f.head.id == read_header::id && !std::exchange(is_answered, true)) {
      const auto other = actor::make_address(7, 1, 10);
      world.send(fetcher_where, header_part{own_card.header, 0, 3, "bad"}, other);
      world.send(fetcher_where, header_part{own_card.header, 5, 9, "late"}, server_of(2));
      world.send(fetcher_where, header_part{own_card.header + 1, 0, 3, "bad"}, server_of(2));
    }
    return true;
  };
  fetch(own_card, 2);
  EXPECT_TRUE(is_served("coder"));
  EXPECT_EQ(asked[2], 1);
}

TEST_F(model_fetcher_test, does_not_serve_a_header_without_a_tokenizer) {
  tiny.metadata.erase("tokenizer.ggml.tokens");
  const std::string broken = tiny.file()->copy_header();
  own_card.header = gguf::compute_header_digest(broken);
  add_server(2, broken);
  add_server(3, broken);
  fetch(own_card, 2);
  fetch(own_card, 3);
  EXPECT_FALSE(is_served("coder", 5 * second));
  EXPECT_EQ(asked[2] + asked[3], 1) << "the next has the same bytes";
}

TEST_F(model_fetcher_test, does_not_serve_a_model_whose_worker_lies_about_its_vocabulary) {
  auto lie = own_card;
  lie.vocabulary += 1;
  add_server(2, own_header);
  add_server(3, own_header);
  fetch(lie, 2);
  EXPECT_FALSE(is_served("coder", 5 * second));
  fetch(own_card, 3);
  EXPECT_TRUE(is_served("coder"));
  fetch(lie, 2);
  world.run_for(5 * second);
  EXPECT_NE(shelf->snapshot()->find("coder"), nullptr) << "the previous model is still served";
}

TEST_F(model_fetcher_test, serves_no_names_that_no_request_can_say) {
  add_server(2, own_header);
  own_card.aliases = {"", "two\nlines", std::string(257, 'x'), "\xff", "fine"};
  for (const std::string& name : own_card.aliases) {
    if (name == "fine") continue;
    auto bad = own_card;
    bad.name = name;
    fetch(bad, 2);
    world.run_for(second);
    EXPECT_TRUE(shelf->snapshot()->empty());
  }
  fetch(own_card, 2);
  ASSERT_TRUE(is_served("coder"));
  EXPECT_THAT(shelf->snapshot()->models()[0].aliases, ElementsAre("fine"));
}

TEST_F(model_fetcher_test, joins_what_the_workers_of_a_model_say) {
  add_server(2, own_header);
  auto more = own_card;
  more.name = "a-coder";
  more.aliases = {"fast"};
  more.context = 64;
  more.numerics = "amx";
  fetch(own_card, 2);
  ASSERT_TRUE(is_served("coder"));
  fetch(more, 2);
  ASSERT_TRUE(is_served("fast"));
  const auto models = shelf->snapshot();
  ASSERT_EQ(models->models().size(), 1U);
  const auto model = models->find("coder");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->name, "a-coder");
  EXPECT_THAT(model->aliases, ElementsAre("coder", "fast"));
  EXPECT_EQ(model->answers->context_max(), 64U);
  EXPECT_EQ(asked[2], 1) << "the header is known";
  EXPECT_THAT(model->computed_by, ElementsAre("amx", "exact"));
}

TEST_F(model_fetcher_test, names_the_numerics_that_there_are) {
  const auto kinds = [&] { return shelf->snapshot()->find("coder")->computed_by; };
  add_server(2, own_header);
  fetch(own_card, 2);
  ASSERT_TRUE(is_served("coder"));
  EXPECT_THAT(kinds(), ElementsAre("exact"));
  for (const std::string numerics : {"amx", "", "a\x1b", "amx", "bf16"}) {
    own_card.numerics = numerics;
    fetch(own_card, 2);
  }
  world.run_for(second);
  EXPECT_THAT(kinds(), ElementsAre("amx", "bf16", "exact"));
  world.send(fetcher_where, lose_model{own_card.model, "amx"});
  world.send(fetcher_where, lose_model{own_card.model, "amx"});
  world.send(fetcher_where, lose_model{own_card.model, "unheard of"});
  world.run_for(second);
  EXPECT_THAT(kinds(), ElementsAre("bf16", "exact"));
  EXPECT_EQ(shelf->snapshot()->find("coder")->fingerprint, make_fingerprint(own_card.model, numerics_id("bf16")));
  for (int i = 0; i < 100; ++i) {
    own_card.numerics = "kind " + std::to_string(i);
    fetch(own_card, 2);
  }
  world.run_for(second);
  EXPECT_EQ(kinds().size(), 16U) << "there is a limit";
}

TEST(join_card, gives_the_same_in_any_order) {
  process_card a{.name = "b", .aliases = {"x"}, .numerics = "exact", .context = 9};
  const process_card b{.name = "a", .aliases = {"y", "b"}, .numerics = "amx", .context = 8};
  process_card other = b;
  EXPECT_TRUE(join_card(other, a));
  EXPECT_TRUE(join_card(a, b));
  EXPECT_EQ(a, other);
  EXPECT_FALSE(join_card(a, b));
}

TEST_F(model_fetcher_test, loses_a_model_and_learns_it_again) {
  add_server(2, own_header);
  fetch(own_card, 2);
  ASSERT_TRUE(is_served("coder"));
  const auto kept = shelf->snapshot()->find("coder");
  world.send(fetcher_where, lose_model{own_card.model});
  world.run_for(second);
  EXPECT_TRUE(shelf->snapshot()->empty());
  EXPECT_FALSE(kept->answers->tokenizer()->encode("x").empty()) << "an owner of the model keeps it";
  fetch(own_card, 2);
  EXPECT_TRUE(is_served("coder"));
  world.send(fetcher_where, lose_model{own_card.model});
  fetch(own_card, 2);
  world.send(fetcher_where, lose_model{own_card.model});
  world.run_for(5 * second);
  EXPECT_TRUE(shelf->snapshot()->empty()) << "a job in progress changes nothing";
}

TEST_F(model_fetcher_test, is_told_again_after_it_died) {
  add_server(2, own_header);
  fetch(own_card, 2);
  ASSERT_TRUE(is_served("coder"));
  world.restart(fetcher_where);
  world.run_for(second);
  EXPECT_NE(shelf->snapshot()->find("coder"), nullptr);
  const auto asked_before = asked[2];
  fetch(own_card, 2);
  world.run_for(5 * second);
  EXPECT_GT(asked[2], asked_before) << "it had lost its state";
  EXPECT_NE(shelf->snapshot()->find("coder"), nullptr);
  world.send(fetcher_where, lose_model{own_card.model});
  world.run_for(second);
  EXPECT_TRUE(shelf->snapshot()->empty());
}

TEST_F(model_fetcher_test, makes_models_on_the_threads_of_a_pool) {
  tiny.metadata["general.description"] = std::string(200'000, 'x');  // makes building the model a large job
  const auto card = card_of(tiny, "coder");
  transport::zmq_fabric fabric(1, {.workers = {1, 16, 17, 99}});
  const auto control = fabric.make_link(99);
  const auto wire = fabric.make_link(1);
  std::uint16_t number = 16;
  const auto pool =
      std::make_shared<actor::thread_pool>(actor::thread_pool::options{}, [&] { return fabric.make_link(number++); });
  actor::worker io(1, 1, *wire, real_environment());
  const auto server =
      io.add<header_server>(10, "header server", roomy,
                            [h = std::make_shared<const std::string>(tiny.file()->copy_header())](
                                actor::actor_context& c) { return std::make_unique<header_server>(c, h); });
  const model_fetcher_options options{.shelf = shelf, .pool = pool};
  const auto fetcher = io.add<model_fetcher>(
      11, "model fetcher", roomy, [&](actor::actor_context& c) { return std::make_unique<model_fetcher>(c, options); });
  std::thread runs([&] { io.run(); });
  ASSERT_TRUE(control->send(test::frame_of(fetcher.where, {}, fetch_model{card, server.where})));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (shelf->snapshot()->empty() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(control->send(test::frame_of(io.host_address(), {}, actor::stop_worker{})));
  runs.join();
  pool->stop();
  ASSERT_FALSE(shelf->snapshot()->empty());
  EXPECT_EQ(shelf->snapshot()->find("coder")->answers->tokenizer()->digest(), card.vocabulary);
}

}  // namespace
}  // namespace redline::actors
