#include "runtime/actor/conversation.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace redline::actor {
namespace {

struct hello {
  static constexpr message_id id{0x0f11};
  static constexpr std::string_view name = "hello";
  std::string text;
  static constexpr auto fields(auto& self) { return std::tie(self.text); }
};
struct bye {
  static constexpr message_id id{0x0f12};
  static constexpr std::string_view name = "bye";
  static constexpr auto fields(auto&) { return std::tie(); }
};

constexpr instant noon{microseconds{1000}};

/// A story that asks one question repeatedly, with a diary of what has happened.
class storyteller {
 public:
  task<> tell() {
    diary.push_back("begin");
    for (;;) {
      const std::string word = co_await ask();
      if (word.empty()) co_return;
      diary.push_back(word);
    }
  }
  /// Returns the next hello's text, an empty string after a bye, or "none" when none comes in time.
  task<std::string> ask() {
    const auto m = co_await talk.next<hello, bye>(noon);
    if (const auto* h = m.as<hello>()) {
      if (h->text == "throw") throw std::runtime_error("as asked");
      co_return h->text;
    }
    co_return m.is_timeout() ? "none" : "";
  }

  std::vector<std::string> diary;
  conversation talk;
};

TEST(conversation, runs_to_its_first_wait_and_on_with_each_message) {
  storyteller s;
  s.talk.begin(s.tell());
  EXPECT_EQ(s.diary, std::vector<std::string>{"begin"});
  EXPECT_TRUE(s.talk.hear(hello{"a"}));
  EXPECT_TRUE(s.talk.hear(hello{"b"}));
  EXPECT_EQ(s.diary, (std::vector<std::string>{"begin", "a", "b"}));
  EXPECT_FALSE(s.talk.is_over());
  EXPECT_TRUE(s.talk.hear(bye{}));
  EXPECT_TRUE(s.talk.is_over());
  EXPECT_FALSE(s.talk.hear(hello{"late"}));
  EXPECT_EQ(s.diary.size(), 3u);
}

TEST(conversation, does_not_hear_what_it_does_not_wait_for) {
  struct choosy {
    task<> tell() {
      (void)co_await talk.next<bye>();
      said = true;
    }
    bool said = false;
    conversation talk;
  } c;
  c.talk.begin(c.tell());
  EXPECT_FALSE(c.talk.hear(hello{"a"}));
  c.talk.note_time(noon);  // it waits without a limit
  EXPECT_FALSE(c.said);
  EXPECT_TRUE(c.talk.hear(bye{}));
  EXPECT_TRUE(c.said);
}

TEST(conversation, goes_on_without_a_message_when_the_deadline_has_come) {
  storyteller s;
  s.talk.begin(s.tell());
  s.talk.note_time(noon - microseconds{1});
  EXPECT_EQ(s.diary.size(), 1u);
  s.talk.note_time(noon);
  EXPECT_EQ(s.diary.back(), "none");
  s.talk.hear(hello{"a"});
  EXPECT_EQ(s.diary.back(), "a");
}

TEST(conversation, throws_into_the_handler_what_a_nested_task_throws) {
  storyteller s;
  s.talk.begin(s.tell());
  EXPECT_THROW(s.talk.hear(hello{"throw"}), std::runtime_error);
  EXPECT_TRUE(s.talk.is_over());
  EXPECT_FALSE(s.talk.hear(hello{"a"}));
}

TEST(conversation, frees_what_its_story_holds_when_it_is_dropped) {
  const auto held = std::make_shared<int>(1);
  struct holder {
    task<> tell(std::shared_ptr<int> kept) { (void)co_await inner(std::move(kept)); }
    task<int> inner(std::shared_ptr<int> kept) {
      (void)co_await talk.next<bye>();
      co_return *kept;
    }
    conversation talk;
  };
  {
    holder h;
    h.talk.begin(h.tell(held));
    EXPECT_GT(held.use_count(), 1);
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace redline::actor
