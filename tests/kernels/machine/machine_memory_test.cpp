#include "kernels/machine/machine_memory.hpp"

#include <gtest/gtest.h>

#include "kernels/machine/memory.hpp"

namespace redline::kernels {
namespace {

TEST(machine_memory, finds_the_setting_that_is_chosen) {
  EXPECT_EQ(chosen_word("always [madvise] never"), "madvise");
  EXPECT_EQ(chosen_word("[never]"), "never");
  for (const char* none : {"", "always", "]always[", "[always"}) EXPECT_EQ(chosen_word(none), "unknown") << none;
}

TEST(machine_memory, offers_no_more_than_the_group_may_hold) {
  machine_memory m{.total_bytes = 16, .available_bytes = 10};
  EXPECT_EQ(m.usable_bytes(), 10U);
  m.cgroup_bytes = 4;
  EXPECT_EQ(m.usable_bytes(), 4U);
  m.cgroup_bytes = 12;
  EXPECT_EQ(m.usable_bytes(), 10U);
  EXPECT_EQ(m.limit_bytes(), 12U);
}

TEST(machine_memory, reads_this_machine) {
  const machine_memory m = read_machine_memory();
  EXPECT_GT(m.available_bytes, 0U);
  EXPECT_LE(m.available_bytes, m.total_bytes);
}

TEST(machine_memory, finds_a_block_that_was_touched_among_what_is_held) {
  const held_memory before = read_held_memory();
  const memory_block block(std::size_t{64} << 20);
  for (std::size_t i = 0; i < block.size(); i += 4096) block.data()[i] = std::byte{1};
  const held_memory after = read_held_memory();
  EXPECT_GE(after.resident_bytes, before.resident_bytes + block.size() / 2);
  EXPECT_LE(after.huge_bytes, after.resident_bytes);
}

}  // namespace
}  // namespace redline::kernels
