#include "runtime/actor/worker.hpp"

#include <gtest/gtest.h>

#include "runtime/actor/undelivered.hpp"
#include "tests/support/hand_link.hpp"

namespace redline::actor {
namespace {

using test::frame_of;

struct note {
  static constexpr message_id id{0x0f01};
  static constexpr std::string_view name = "note";
  std::string text;
  static constexpr auto fields(auto& self) { return std::tie(self.text); }
};
struct order {
  static constexpr message_id id{0x0f02};
  static constexpr std::string_view name = "order";
  static constexpr bool control = true;
  std::string text;
  static constexpr auto fields(auto& self) { return std::tie(self.text); }
};
struct unwanted {
  static constexpr message_id id{0x0f03};
  static constexpr std::string_view name = "unwanted";
  static constexpr auto fields(auto&) { return std::tie(); }
};

using diary = std::vector<std::string>;

/// Records the messages that it receives and follows their instructions.
class scribe final : public actor_of<scribe> {
 public:
  using accepts = protocol<note, order, undeliverable>;
  scribe(actor_context& context, std::shared_ptr<diary> d) : actor_of(context), diary_(std::move(d)) {}

  void on_start() { diary_->push_back("start"); }
  void on_stop() { diary_->push_back("stop"); }
  bool on_idle() { return idle_left_-- > 0; }
  void on(const note& m) {
    diary_->push_back(m.text);
    if (m.text == "throw") throw std::runtime_error("as asked");
    if (m.text == "leave") context().stop();
    if (m.text == "answer") context().send(context().sender(), note{"answer to it"});
    if (m.text == "later") context().after(microseconds{1000}, note{"now"});
    if (m.text == "child") child_ = context().spawn<scribe>("child", {4, 4}, diary_).where;
  }
  void on(const order& m) { diary_->push_back("order " + m.text); }
  [[nodiscard]] address child() const { return child_; }
  void on(const undeliverable& m) { diary_->push_back("undeliverable " + std::string(name_of(m.why.code))); }

 private:
  std::shared_ptr<diary> diary_;
  int idle_left_ = 2;
  address child_;
};

class worker_test : public ::testing::Test {
 protected:
  actor_ref<scribe> add(std::uint32_t number = 5, mailbox_limits limits = {4, 4}) {
    return w.add<scribe>(number, "scribe", limits,
                         [d = notes](actor_context& c) { return std::make_unique<scribe>(c, d); });
  }
  void tell(address to, const char* text) { w.deliver(frame_of(to, sender, note{text})); }
  void run() {
    while (w.run_ready()) {
    }
  }

  test::virtual_environment env;
  test::hand_link wire;
  worker w{1, 2, wire, env};
  std::shared_ptr<diary> notes = std::make_shared<diary>();
  address sender = make_address(7, 1, 1);
  address supervisor = make_address(1, 1, 1);
};

TEST_F(worker_test, starts_an_actor_and_gives_it_its_mail_in_order) {
  const auto s = add();
  tell(s.where, "a");
  tell(s.where, "b");
  run();
  EXPECT_EQ(*notes, (diary{"start", "a", "b"}));
  EXPECT_FALSE(w.run_ready());
}

TEST_F(worker_test, lets_control_overtake_data) {
  const auto s = add();
  tell(s.where, "data");
  w.deliver(frame_of(s.where, sender, order{"halt"}));
  run();
  EXPECT_EQ(*notes, (diary{"start", "order halt", "data"}));
}

TEST_F(worker_test, handles_one_message_of_each_actor_in_turn) {
  const auto a = add(5);
  const auto b = add(6);
  tell(a.where, "a1");
  tell(a.where, "a2");
  tell(b.where, "b1");
  EXPECT_TRUE(w.run_ready());
  EXPECT_EQ(*notes, (diary{"start", "start", "a1", "b1"}));
  run();
  EXPECT_EQ(notes->back(), "a2");
}

TEST_F(worker_test, answers_go_to_the_sender) {
  const auto s = add();
  tell(s.where, "answer");
  run();
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.sent.front().head.from, s.where);
  EXPECT_EQ(wire.take<note>()->text, "answer to it");
  EXPECT_EQ(wire.last_to, sender);
}

TEST_F(worker_test, returns_what_a_full_mailbox_does_not_take) {
  const auto s = add(5, {.control_max = 1, .data_max = 2});
  for (int i = 0; i < 3; ++i) tell(s.where, "x");
  const auto back = wire.take<undeliverable>();
  ASSERT_TRUE(back);
  EXPECT_EQ(wire.last_to, sender);
  EXPECT_EQ(back->to, s.where);
  EXPECT_EQ(back->what, note::id);
  EXPECT_EQ(back->why.code, errc::mailbox_full);
  EXPECT_TRUE(wire.sent.empty());
  run();
  EXPECT_EQ(notes->size(), 3u);
}

TEST_F(worker_test, returns_what_a_message_was_about_and_counts_it) {
  const auto before = read_undelivered_counts();
  const auto s = add(5, {.control_max = 1, .data_max = 1});
  auto lost = frame_of(s.where, sender, note{"x"});
  lost.head.subject = 17;
  w.deliver(lost);
  w.deliver(lost);
  EXPECT_EQ(wire.take<undeliverable>()->about, 17u);
  EXPECT_EQ(read_undelivered_counts().mailbox_full, before.mailbox_full + 1);
}

TEST_F(worker_test, returns_messages_to_nobody_and_messages_nobody_wants) {
  const auto s = add();
  tell(make_address(1, 2, 99), "hello?");
  EXPECT_EQ(wire.take<undeliverable>()->why.code, errc::unreachable);
  w.deliver(frame_of(s.where, sender, unwanted{}));
  EXPECT_EQ(wire.take<undeliverable>()->why.code, errc::unknown_message);
  auto broken = frame_of(s.where, sender, note{"x"});
  broken.body.pop_back();
  w.deliver(broken);
  EXPECT_EQ(wire.take<undeliverable>()->why.code, errc::malformed_message);
  EXPECT_FALSE(w.run_ready());
}

/// Answers each note with a note, and ignores failed deliveries.
class careless final : public actor_of<careless> {
 public:
  using accepts = protocol<note>;
  using actor_of::actor_of;
  void on(const note&) { context().send(context().sender(), note{"answer"}); }
};

TEST_F(worker_test, an_actor_may_leave_unsaid_what_becomes_of_its_messages) {
  const auto s = w.add<careless>(5, "careless", {4, 4}, [](actor_context& c) { return std::make_unique<careless>(c); });
  const auto before = read_undelivered_counts();
  w.deliver(frame_of(s.where, sender, undeliverable{}));
  wire.refusal = failure{errc::unreachable, "the session is over"};
  tell(s.where, "question");
  run();
  const auto after = read_undelivered_counts();
  EXPECT_EQ(after.unreachable, before.unreachable + 1) << "the answer";
  EXPECT_EQ(after.unknown, before.unknown) << "but not the report that it did not arrive";
}

TEST_F(worker_test, never_returns_a_returned_message) {
  w.deliver(frame_of(make_address(1, 2, 99), sender, undeliverable{}));
  w.deliver(frame_of(make_address(1, 2, 99), {}, note{"from nobody"}));
  EXPECT_TRUE(wire.sent.empty());
}

TEST_F(worker_test, tells_a_local_sender_that_the_wire_refused) {
  const auto s = add();
  wire.refusal = failure{errc::unreachable, "no route"};
  tell(s.where, "answer");
  run();
  EXPECT_EQ(notes->back(), "undeliverable unreachable");
}

TEST_F(worker_test, reports_a_death_and_makes_the_actor_anew_when_asked) {
  w.report_deaths_to(supervisor);
  const auto s = add();
  tell(s.where, "throw");
  tell(s.where, "lost with the dead");
  run();
  const auto down = wire.take<actor_down>();
  ASSERT_TRUE(down);
  EXPECT_EQ(wire.last_to, supervisor);
  EXPECT_EQ(down->who, s.where);
  EXPECT_EQ(down->reason, "as asked");
  EXPECT_EQ(w.find(s), nullptr);
  tell(s.where, "too early");
  EXPECT_EQ(wire.take<undeliverable>()->why.code, errc::unreachable);

  w.deliver(frame_of(w.host_address(), supervisor, restart_actor{s.where}));
  EXPECT_NE(w.find(s), nullptr);
  tell(s.where, "again");
  run();
  EXPECT_EQ(*notes, (diary{"start", "throw", "start", "again"}));
}

TEST_F(worker_test, restarts_a_living_actor_with_an_empty_mailbox) {
  const auto s = add();
  tell(s.where, "old");
  w.deliver(frame_of(w.host_address(), supervisor, restart_actor{s.where}));
  run();
  EXPECT_EQ(*notes, (diary{"start", "start"}));
  tell(s.where, "new");
  run();
  EXPECT_EQ(notes->back(), "new");
}

TEST_F(worker_test, reports_an_actor_that_cannot_even_start) {
  class stillborn final : public actor_of<stillborn> {
   public:
    using accepts = protocol<note>;
    using actor_of::actor_of;
    void on_start() { throw std::runtime_error("no file"); }
    void on(const note&) {}
  };
  w.report_deaths_to(supervisor);
  const auto s =
      w.add<stillborn>(8, "stillborn", {4, 4}, [](actor_context& c) { return std::make_unique<stillborn>(c); });
  EXPECT_EQ(wire.take<actor_down>()->reason, "while starting: no file");
  EXPECT_EQ(w.find(s), nullptr);
}

TEST_F(worker_test, forgets_an_actor_that_stopped) {
  const auto s = add();
  tell(s.where, "leave");
  tell(s.where, "unread");
  run();
  EXPECT_EQ(*notes, (diary{"start", "leave", "stop"}));
  EXPECT_EQ(w.find(s), nullptr);
  tell(s.where, "late");
  EXPECT_EQ(wire.take<undeliverable>()->why.code, errc::unreachable);
}

TEST_F(worker_test, gives_children_numbers_of_their_own_and_does_not_restart_them) {
  w.report_deaths_to(supervisor);
  const auto s = add();
  tell(s.where, "child");
  run();
  const address child = w.find(s)->child();
  EXPECT_NE(w.find(actor_ref<scribe>{child}), nullptr);
  tell(child, "throw");
  run();
  EXPECT_EQ(wire.take<actor_down>()->who, child);
  w.deliver(frame_of(w.host_address(), supervisor, restart_actor{child}));
  tell(child, "anybody?");
  EXPECT_EQ(wire.take<undeliverable>()->why.code, errc::unreachable);
}

TEST_F(worker_test, fires_timers_when_due) {
  const auto s = add();
  EXPECT_EQ(w.fire_timers(), std::nullopt);
  tell(s.where, "later");
  run();
  const auto due = w.fire_timers();
  ASSERT_TRUE(due);
  EXPECT_EQ(*due, env.now() + microseconds{1000});
  run();
  EXPECT_EQ(notes->back(), "later");
  env.advance(microseconds{1000});
  EXPECT_EQ(w.fire_timers(), std::nullopt);
  run();
  EXPECT_EQ(notes->back(), "now");
}

TEST_F(worker_test, drops_timers_of_the_dead) {
  const auto s = add();
  tell(s.where, "later");
  tell(s.where, "leave");
  run();
  env.advance(microseconds{1000});
  EXPECT_EQ(w.fire_timers(), std::nullopt);
  EXPECT_TRUE(wire.sent.empty());
}

TEST_F(worker_test, a_timer_does_not_reach_the_successor_of_the_actor_that_set_it) {
  const auto s = add();
  tell(s.where, "later");
  tell(s.where, "throw");
  run();
  w.deliver(frame_of(w.host_address(), {}, restart_actor{s.where}));
  env.advance(microseconds{1000});
  EXPECT_EQ(w.fire_timers(), std::nullopt);
  run();
  EXPECT_EQ(notes->back(), "start");
}

TEST_F(worker_test, a_timer_waits_for_room_in_a_full_mailbox) {
  const auto s = add(5, {1, 1});
  tell(s.where, "later");
  run();
  env.advance(microseconds{1000});
  tell(s.where, "in the way");
  ASSERT_TRUE(w.fire_timers());
  run();
  EXPECT_EQ(notes->back(), "in the way");
  env.advance(microseconds{100'000});
  EXPECT_EQ(w.fire_timers(), std::nullopt);
  run();
  EXPECT_EQ(notes->back(), "now");
}

TEST_F(worker_test, temporary_actors_of_a_process_that_starts_again_have_other_addresses) {
  test::virtual_environment other(2);
  worker successor{1, 2, wire, other};
  const auto make = [d = notes](actor_context& c) { return std::make_unique<scribe>(c, d); };
  EXPECT_NE(w.add_temporary<scribe>("session 1", {4, 4}, make),
            successor.add_temporary<scribe>("session 1", {4, 4}, make));
}

TEST_F(worker_test, works_while_idle_as_long_as_the_actor_asks) {
  add();
  EXPECT_TRUE(w.run_idle());
  EXPECT_TRUE(w.run_idle());
  EXPECT_FALSE(w.run_idle());
}

TEST_F(worker_test, reports_what_occupied_its_thread) {
  diary seen;
  w.report_activities_to([&](const activity& a) {
    EXPECT_LE(a.begin, a.end);
    seen.push_back(std::string(a.actor) + ": " + std::string(a.message));
  });
  tell(add().where, "a");
  EXPECT_EQ(seen, diary{"scribe: "}) << "it was decoded";
  run();
  EXPECT_EQ(seen, (diary{"scribe: ", "scribe: note"}));
  w.run_idle();
  EXPECT_EQ(seen, (diary{"scribe: ", "scribe: note", "scribe: "}));
}

TEST_F(worker_test, stops_all_actors_the_youngest_first) {
  struct named final : actor_of<named> {
    using accepts = protocol<note>;
    named(actor_context& c, std::shared_ptr<diary> d) : actor_of(c), d_(std::move(d)) {}
    void on(const note&) {}
    void on_stop() { d_->push_back(context().name()); }
    std::shared_ptr<diary> d_;
  };
  for (const char* name : {"first", "second", "third"}) {
    w.add_temporary<named>(name, {1, 1}, [d = notes](actor_context& c) { return std::make_unique<named>(c, d); });
  }
  w.deliver(frame_of(w.host_address(), {}, stop_worker{}));
  w.run();  // returns at once, after ending them
  EXPECT_EQ(*notes, (diary{"third", "second", "first"}));
}

/// A link with waiting frames that records when it is asked for one.
class full_link final : public link {
 public:
  full_link(std::deque<frame> waiting, std::shared_ptr<diary> d) : waiting_(std::move(waiting)), diary_(std::move(d)) {}
  result<void> send(const frame&) override { return {}; }
  std::optional<frame> receive() override {
    if (waiting_.empty()) return std::nullopt;
    diary_->push_back("received");
    frame f = std::move(waiting_.front());
    waiting_.pop_front();
    return f;
  }
  void wait(microseconds) override {  // called when no frame is left
    waiting_.push_back(frame_of(make_address(1, 1, 0), make_address(1, 1, 0), stop_worker{}));
  }

 private:
  std::deque<frame> waiting_;
  std::shared_ptr<diary> diary_;
};

TEST(worker, receives_no_more_than_some_bytes_before_its_actors_have_their_turn) {
  for (const auto& [bytes, most] : {std::pair<std::size_t, std::ptrdiff_t>{600U << 10, 2}, {16U << 10, 64}, {1, 256}}) {
    const auto d = std::make_shared<diary>();
    test::virtual_environment env;
    std::deque<frame> waiting;
    for (int i = 0; i < 300; ++i) {
      waiting.push_back(frame_of(make_address(1, 1, 5), make_address(1, 2, 5), note{std::string(bytes, 'x')}));
    }
    full_link wire(std::move(waiting), d);
    worker core(1, 1, wire, env);
    core.add<scribe>(5, "scribe", {4096, 4096}, [d](actor_context& c) { return std::make_unique<scribe>(c, d); });
    core.run();
    const auto first = std::find_if(d->begin(), d->end(), [](const auto& line) { return line.starts_with('x'); });
    EXPECT_LE(std::count(d->begin(), first, "received"), most) << bytes;
    EXPECT_EQ(std::count(d->begin(), d->end(), std::string(bytes, 'x')), 300);
  }
}

}  // namespace
}  // namespace redline::actor
