#include "actors/cli/lsp/message_frames.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redline::actors::cli::lsp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

frame message(std::string text) { return {frame::kind::message, std::move(text)}; }

TEST(message_frames, are_the_same_however_they_are_cut) {
  const std::string stream = frame_of("{}") + "content-type: application/vscode-jsonrpc; charset=\"UTF-8\"\r\n" +
                             frame_of("") + "Content-Length: 3\nX: y\n\nabc";
  const auto expected = ElementsAre(message("{}"), message(""), message("abc"));
  frame_reader whole;
  EXPECT_THAT(whole.feed(stream), expected);
  frame_reader bytes;
  std::vector<frame> all;
  for (const char& c : stream) {
    for (frame& f : bytes.feed({&c, 1})) all.push_back(std::move(f));
  }
  EXPECT_THAT(all, expected);
  EXPECT_FALSE(bytes.is_inside());
}

TEST(message_frames, leave_out_a_message_that_is_too_long_and_go_on) {
  frame_reader reader(8);
  const auto got = reader.feed(frame_of("123456789") + frame_of("12345678"));
  ASSERT_THAT(got, SizeIs(2));
  EXPECT_EQ(got[0].what, frame::kind::refused);
  EXPECT_EQ(got[0].text, "expected a message of at most 8 bytes, found one of 9; the message was ignored");
  EXPECT_EQ(got[1], message("12345678"));
}

TEST(message_frames, hold_nothing_for_a_length_that_is_only_promised) {
  frame_reader reader;
  EXPECT_THAT(reader.feed("Content-Length: 9007199254740992\r\n\r\nabc"), IsEmpty());
  EXPECT_THAT(reader.feed(std::string(1 << 20, 'x')), IsEmpty());
  EXPECT_TRUE(reader.is_inside());
}

TEST(message_frames, refuse_other_charsets) {
  frame_reader reader;
  const auto got = reader.feed("Content-Type: text/plain; charset=utf-16\r\n" + frame_of("xx") + frame_of("{}"));
  ASSERT_THAT(got, SizeIs(2));
  EXPECT_EQ(got[0].what, frame::kind::refused);
  EXPECT_THAT(got[0].text, HasSubstr("UTF-8"));
  EXPECT_EQ(got[1], message("{}"));
}

TEST(message_frames, say_why_a_stream_cannot_be_followed) {
  const auto why = [](const std::string& bytes) {
    frame_reader reader;
    const auto got = reader.feed(bytes + frame_of("{}"));
    EXPECT_THAT(got, SizeIs(1)) << bytes;
    EXPECT_EQ(got[0].what, frame::kind::broken) << bytes;
    EXPECT_THAT(reader.feed(frame_of("{}")), IsEmpty()) << bytes;
    return got[0].text;
  };
  EXPECT_EQ(why("\r\n"), "expected a Content-Length among a message's header lines, found none");
  EXPECT_EQ(why("{\"jsonrpc\"}\r\n"), "expected a header line such as 'Content-Length: 120', found '{\"jsonrpc\"}'");
  for (const char* bad : {"", "-1", "1x", "99999999999999999999", "0x10", "1e3", "9007199254740993"}) {
    EXPECT_THAT(why("Content-Length: " + std::string(bad) + "\r\n\r\n"), HasSubstr("expected a number of bytes"));
  }
  EXPECT_THAT(why("Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), HasSubstr("two different ones"));
  EXPECT_THAT(why(std::string(5000, 'h')), HasSubstr("4096"));
  EXPECT_THAT(why("X: " + std::string(3000, 'h') + "\r\nY: " + std::string(3000, 'h')), HasSubstr("4096"));
}

}  // namespace
}  // namespace redline::actors::cli::lsp
