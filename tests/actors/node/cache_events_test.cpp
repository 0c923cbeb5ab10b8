#include "actors/node/cache_events.hpp"

#include <gtest/gtest.h>

#include <msgpack.hpp>
#include <sstream>

namespace redline::actors {
namespace {

using kv::prefix_change;

/// Returns the payload as text.
std::string as_text(const std::string& payload) {
  std::ostringstream out;
  out << msgpack::unpack(payload.data(), payload.size()).get();
  return out.str();
}

prefix_change stored(std::uint64_t key, std::uint64_t parent, token first, tenant_id tenant = {}) {
  prefix_change c{.tenant = tenant, .key = key, .parent = parent};
  for (std::size_t i = 0; i < c.tokens.size(); ++i) c.tokens[i] = first + static_cast<token>(i);
  return c;
}
prefix_change removed(std::uint64_t key) { return {.what = prefix_change::kind::removed, .key = key}; }

std::string tokens(token first, int pages) {
  std::string out;
  for (int i = 0; i < pages * 32; ++i) out += (i > 0 ? "," : "") + std::to_string(first + i);
  return "[" + out + "]";
}

TEST(cache_events, have_the_members_of_vllms_in_their_order) {
  const std::vector changes{stored(11, 0, 100), stored(12, 11, 132),
                            stored(21, 0, 500), removed(12),
                            removed(11),        prefix_change{.what = prefix_change::kind::cleared}};
  EXPECT_EQ(as_text(encode_cache_events(changes, 1.5)),
            "[1.5,[[\"BlockStored\",[11,12],null," + tokens(100, 2) +
                ",32,null,\"GPU\",null],"
                "[\"BlockStored\",[21],null," +
                tokens(500, 1) +
                ",32,null,\"GPU\",null],"
                "[\"BlockRemoved\",[12,11],\"GPU\"],[\"AllBlocksCleared\"]],0]");
}

TEST(cache_events, name_the_block_before_the_first_one) {
  const std::vector changes{stored(13, 12, 7)};
  EXPECT_NE(as_text(encode_cache_events(changes, 0)).find("[\"BlockStored\",[13],12,["), std::string::npos);
}

TEST(cache_events, tell_nothing_of_what_tenants_or_salts_keep_to_themselves) {
  const std::vector own{stored(11, 0, 100, {5})};
  EXPECT_EQ(encode_cache_events(own, 0), "");
  const std::vector both{stored(11, 0, 100, {5}), stored(12, 0, 300)};
  const auto text = as_text(encode_cache_events(both, 0));
  EXPECT_EQ(text.find("100"), std::string::npos);
  EXPECT_NE(text.find("[12]"), std::string::npos);
}

}  // namespace
}  // namespace redline::actors
