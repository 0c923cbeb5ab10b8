#include "actors/cli/review/hunk_review.hpp"

#include <gmock/gmock.h>

namespace redline::actors::cli {
namespace {

using ::testing::HasSubstr;

constexpr const char* before = "a\n1\n2\n3\n4\n5\n6\n7\nb\n1\n2\n3\n4\n5\n6\n7\nc\n";
constexpr const char* after = "A\n1\n2\n3\n4\n5\n6\n7\nB\n1\n2\n3\n4\n5\n6\n7\nC\n";

/// A user who answers with these lines and then leaves, with an editor that returns `edited` for every input.
struct person {
  std::vector<std::string> answers;
  result<std::string> edited = failure{errc::io_error, "no editor"};
  std::string shown;
  std::string given;  // the text given to the editor
  std::size_t next = 0;

  hunk_review review() {
    return hunk_review({.show = [this](const std::string& text) { shown += text; },
                        .read_line = [this]() -> std::optional<std::string> {
                          if (next == answers.size()) return std::nullopt;
                          return answers[next++];
                        },
                        .edit =
                            [this](const std::string& text) {
                              given = text;
                              return edited;
                            }});
  }
  std::string file() {
    auto r = review();
    return with_hunks(before, r.choose("x.py", hunks_of(before, after)));
  }
};

TEST(hunk_review, takes_what_the_person_takes) {
  EXPECT_EQ((person{{"y", "n", "y"}}.file()), "A\n1\n2\n3\n4\n5\n6\n7\nb\n1\n2\n3\n4\n5\n6\n7\nC\n");
  EXPECT_EQ((person{{"a"}}.file()), after);
  EXPECT_EQ((person{{"n", "a"}}.file()), "a\n1\n2\n3\n4\n5\n6\n7\nB\n1\n2\n3\n4\n5\n6\n7\nC\n");
  EXPECT_EQ((person{{"y", "d"}}.file()), "A\n1\n2\n3\n4\n5\n6\n7\nb\n1\n2\n3\n4\n5\n6\n7\nc\n");
}

TEST(hunk_review, shows_each_hunk_and_its_number) {
  person p{{"n", "n", "n"}};
  p.file();
  EXPECT_THAT(p.shown,
              HasSubstr("--- x.py\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n(1/3) Take this hunk [y,n,a,d,e,q,?]? "));
  EXPECT_THAT(p.shown, HasSubstr("(3/3) Take"));
}

TEST(hunk_review, ends_for_all_files_with_q_and_when_nobody_answers) {
  for (const std::vector<std::string>& answers : {std::vector<std::string>{"y", "q"}, {"y"}}) {
    person p{answers};
    auto r = p.review();
    EXPECT_EQ(r.choose("x.py", hunks_of(before, after)).size(), 1U);
    EXPECT_TRUE(r.is_over());
    EXPECT_TRUE(r.choose("y.py", hunks_of(before, after)).empty());
  }
}

TEST(hunk_review, explains_the_letters_to_who_gives_another) {
  person p{{"what", "", "?", "y", "d"}};
  EXPECT_THAT(p.file(), HasSubstr("A\n"));
  EXPECT_THAT(p.shown, HasSubstr("d - do not take this hunk or any later one of this file\n"));
}

TEST(hunk_review, takes_a_hunk_as_it_was_edited) {
  person p{{"e", "d"}, std::string("-a\n+Z\n+Y\n 1\n 2\n 3\n")};
  EXPECT_THAT(p.file(), ::testing::StartsWith("Z\nY\n1\n"));
  EXPECT_THAT(p.given, HasSubstr("# @@ -1,4 +1,4 @@\n"));
  EXPECT_THAT(p.given, HasSubstr("-a\n+A\n 1\n"));
}

TEST(hunk_review, asks_again_when_the_edited_hunk_cannot_be_taken) {
  person p{{"e", "n", "d"}, std::string("-q\n")};
  EXPECT_EQ(p.file(), before);
  EXPECT_THAT(p.shown, HasSubstr("must match those of the file"));
  person q{{"e", "d"}};
  EXPECT_EQ(q.file(), before);
  EXPECT_THAT(q.shown, HasSubstr("no editor\n"));
}

}  // namespace
}  // namespace redline::actors::cli
