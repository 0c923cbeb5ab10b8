#include "actors/messages/all_messages.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "runtime/actor/codec.hpp"
#include "tests/support/message_sample.hpp"
#include "tests/support/test_data.hpp"

namespace redline::actors {
namespace {

std::string hex(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += digits[static_cast<unsigned char>(c) >> 4];
    text += digits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

// The messages that processes send and expect. If a line of the messages between processes changes, raise
// `pool_protocol`, which tests/actors/node/pool_rules_test.cpp checks. REDLINE_GOLDEN=write rewrites the file.
TEST(all_messages, have_the_bytes_they_always_had) {
  const std::string path = test::source_path("tests/golden/messages.txt");
  std::map<std::string, std::string> found;
  for_each_message([&]<class M>(std::type_identity<M>) {
    char number[8];
    std::snprintf(number, sizeof number, "%04x", M::id.value);
    found[std::string(number) + " " + std::string(M::name)] = hex(actor::encode(test::sample_of<M>(7)));
  });
  if (const char* mode = std::getenv("REDLINE_GOLDEN"); mode != nullptr && std::string_view(mode) == "write") {
    std::ofstream out(path);
    for (const auto& [name, bytes] : found) out << name << " " << bytes << "\n";
  }
  std::map<std::string, std::string> golden;
  std::istringstream lines(test::read_file(path));
  for (std::string number, name, bytes; lines >> number >> name >> bytes;) golden[number + " " + name] = bytes;
  EXPECT_EQ(golden, found);
}

TEST(all_messages, come_back_as_they_were_sent) {
  for_each_message([&]<class M>(std::type_identity<M>) {
    for (std::uint32_t seed = 0; seed < 50; ++seed) {
      const std::string bytes = actor::encode(test::sample_of<M>(seed));
      const auto back = actor::decode<M>(bytes);
      ASSERT_TRUE(back) << M::name << ": " << back.error().describe();
      ASSERT_EQ(actor::encode(*back), bytes) << M::name;
    }
  });
}

TEST(all_messages, carry_the_largest_request_that_http_takes) {
  http_arrived largest{.method = "POST", .path = "/v1/tokenize", .body = std::string(sizes::http_body_bytes_max, 'x')};
  for (std::uint32_t bytes = 0; bytes < sizes::http_header_bytes_max; bytes += 5)
    largest.headers.emplace_back("a", "b");
  const auto back = actor::decode<http_arrived>(actor::encode(largest));
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(back->body.size(), sizes::http_body_bytes_max);
}

TEST(all_messages, cut_short_are_refused) {
  for_each_message([&]<class M>(std::type_identity<M>) {
    const std::string bytes = actor::encode(test::sample_of<M>(7));
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const auto back = actor::decode<M>(std::string_view(bytes).substr(0, length));
      ASSERT_FALSE(back) << M::name << " of " << length << " bytes";
      ASSERT_EQ(back.error().code, errc::malformed_message);
    }
  });
}

}  // namespace
}  // namespace redline::actors
