#include "actors/pool/header_server.hpp"

#include <gtest/gtest.h>

#include "runtime/base/size_limits.hpp"
#include "runtime/gguf/file_digest.hpp"
#include "tests/support/hand_link.hpp"

namespace redline::actors {
namespace {

constexpr auto server_where = actor::make_address(2, 1, 10);
constexpr auto client_where = actor::make_address(1, 1, 11);

class header_server_test : public testing::Test {
 protected:
  header_part ask(std::uint64_t of, std::uint64_t offset) {
    core.deliver(test::frame_of(server_where, client_where, read_header{of, offset}));
    core.run_ready();
    const auto part = link.take<header_part>();
    EXPECT_TRUE(part);
    EXPECT_EQ(link.last_to, client_where);
    return part.value_or(header_part{});
  }

  std::shared_ptr<const std::string> header =
      std::make_shared<std::string>(std::string(sizes::header_part_bytes_max, 'a') + "bc");
  std::uint64_t digest = gguf::compute_header_digest(*header);
  test::virtual_environment env;
  test::hand_link link;
  actor::worker core{2, 1, link, env};
  actor::actor_ref<header_server> server =
      core.add<header_server>(10, "header server", {64, 64},
                              [h = header](actor::actor_context& c) { return std::make_unique<header_server>(c, h); });
};

TEST_F(header_server_test, gives_the_header_in_parts) {
  std::string all;
  while (all.size() < header->size()) {
    const auto part = ask(digest, all.size());
    ASSERT_FALSE(part.bytes.empty());
    EXPECT_LE(part.bytes.size(), sizes::header_part_bytes_max);
    EXPECT_EQ(part.offset, all.size());
    EXPECT_EQ(part.total, header->size());
    all += part.bytes;
  }
  EXPECT_EQ(all, *header);
}

TEST_F(header_server_test, has_no_bytes_for_another_header_or_after_the_end) {
  EXPECT_EQ(ask(digest + 1, 0).bytes, "");
  EXPECT_EQ(ask(digest, header->size()).bytes, "");
  EXPECT_EQ(ask(digest, ~std::uint64_t{0}).bytes, "");
}

}  // namespace
}  // namespace redline::actors
