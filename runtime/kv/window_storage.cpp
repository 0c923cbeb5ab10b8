#include "runtime/kv/window_storage.hpp"

namespace redline::kv {

amount window_storage::free() const {
  amount out;
  out[kind::window_page] = pool_.windows()->free_count();
  return out;
}

void window_storage::add_growth(sequence_id, const page_table&, growth& to) const {
  to.per_page[kind::window_page] = 1;
}

/// `pin` refuses a run at a position whose window is gone: until then another sequence may restore it.
std::uint32_t window_storage::resume_at(sequence_id, const page_table&, std::uint32_t length) const { return length; }

void window_storage::rewind(sequence_id, page_table& table) { table.hold_windows(pool_, table.token_count()); }

bool window_storage::pin(sequence_id, page_table& table, std::uint32_t length) {
  table.hold_windows(pool_, length);
  return table.has_windows(pool_, pool_.windows()->first_seen(length), length);
}

void window_storage::describe(const run_range& run, const page_table& table, run_memory& out) const {
  out.window_table = table.window_pieces(pool_, pool_.windows()->first_seen(run.first), run.end());
}

void window_storage::note_pass(const run_range& run, page_table& table) {
  table.hold_windows(pool_, run.end() - run.drafts_count);
}

std::uint32_t window_storage::adopt(sequence_id, page_table& table) {
  std::uint32_t count = table.token_count();
  while (!table.has_windows(pool_, pool_.windows()->first_seen(count), count)) count -= page_tokens;
  return count;
}

}  // namespace redline::kv
