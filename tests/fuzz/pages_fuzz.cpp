// Any series of operations on four page tables that share a nearly full pool gives the same as a list of tokens. Three
// bytes encode an operation: its kind and table, position and amount.
#include <algorithm>
#include <cstdlib>

#include "tests/fuzz/driver.hpp"
#include "tests/support/plain_pages.hpp"

using namespace redline;

std::vector<std::string> fuzz::seeds() {
  using namespace std::string_literals;
  return {"\x00\x00\x60\x02\x20\x09\x04\x10\x05\x07\x00\x00\x06\x40\x00"s,               // append, splice, compact
          "\x00\x00\x50\x28\x01\x00\x08\x00\x20\x03\x10\x08\x01\x05\x03\x05\x18\x00"s,   // shared pages
          "\x00\x00\xff\x08\x00\xff\x10\x00\xff\x05\x10\x00\x10\x00\xff\x18\x00\x40"s,   // a full pool
          "\x00\x00\x40\x03\x08\x03\x06\x00\x00\x01\x10\x02\x07\x00\x00\x00\x00\x20"s};  // offsets, then compaction
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  test::plain_pages w(size == 0 ? 1 : 1 + data[0] % 24);
  const std::size_t most = std::min<std::size_t>(size, 600);
  for (std::size_t i = 1; i + 3 <= most; i += 3) {
    const std::size_t t = data[i] / 8 % w.tables.size();
    kv::page_table& table = w.tables[t];
    const std::uint32_t count = table.token_count();
    const std::uint32_t at = data[i + 1] * (count + 1) / 256;  // any position, including the end
    const std::uint32_t much = data[i + 2];
    bool done = true;
    switch (data[i] % 8) {
      case 0:
        done = w.insert(t, count, much);
        break;
      case 1:
        done = w.insert(t, at, much % 8);
        break;
      case 2:
        w.splice(t, at, std::min(much, count - at), -static_cast<std::int32_t>(much));
        break;
      case 3:
        w.splice(t, at, std::min(much % 4, count - at), static_cast<std::int32_t>(much % 9) - 4);
        break;
      case 4:
        w.truncate(t, at);
        break;
      case 5:
        if (const std::size_t to = much % w.tables.size(); to != t) w.share(t, to);
        break;
      case 6:
        w.apply(table.apply_offsets(w.pool, at));
        break;
      default: {
        const auto moves = table.compact(w.pool);
        w.apply(moves);
        if (!moves.empty() && table.is_fragmented()) std::abort();
      }
    }
    if (!done || !w.wrong().empty()) std::abort();
  }
  w.clear();
  if (!w.wrong().empty() || w.pool.free_count() != w.pool.pages_count()) std::abort();
  return 0;
}
