#pragma once

#include "runtime/kv/storage.hpp"

namespace redline::kv {

/// The window pages of a pool as a kind of memory (window_pages.hpp). Tables keep what their next rows will see;
/// released window pages stay while nothing else needs the memory.
class window_storage final : public storage {
 public:
  /// pool: must have window pages and outlive this.
  explicit window_storage(page_pool& pool) : pool_(pool) {}

  [[nodiscard]] amount free() const override;
  void add_growth(sequence_id sequence, const page_table& table, growth& to) const override;
  [[nodiscard]] std::uint32_t resume_at(sequence_id sequence, const page_table& table,
                                        std::uint32_t length) const override;
  void rewind(sequence_id sequence, page_table& table) override;
  [[nodiscard]] bool pin(sequence_id sequence, page_table& table, std::uint32_t length) override;
  void extend(const run_range&, page_table&) override {}  // a page is allocated together with its window page
  void describe(const run_range& run, const page_table& table, run_memory& out) const override;
  void note_pass(const run_range& run, page_table& table) override;
  [[nodiscard]] std::uint32_t adopt(sequence_id sequence, page_table& table) override;
  void offer(sequence_id, const page_table&, std::span<const page_id>) override {}
  void forget(page_id) override {}
  void release(sequence_id) override {}
  void clear() override {}
  void check_integrity() const override { pool_.windows()->check_integrity(); }

 private:
  page_pool& pool_;
};

}  // namespace redline::kv
