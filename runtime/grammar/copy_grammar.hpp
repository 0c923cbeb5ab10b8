#pragma once

#include "runtime/copy/program_machine.hpp"
#include "runtime/grammar/machine.hpp"

namespace redline::grammar {

/// Programs of Copy-as-Decode. Stands behind each complete copy until `resume`; the span may be `free_tokens` that the
/// model is asked about.
class copy_grammar final : public machine {
 public:
  explicit copy_grammar(copy::program_shape shape) : programs_(std::move(shape)) {}

  [[nodiscard]] state begin() const override { return pack({}, 0); }
  [[nodiscard]] bool advance(state& s, std::uint8_t byte) const override;
  [[nodiscard]] bool may_end(const state& s) const override { return is_over(s); }
  [[nodiscard]] bool is_over(const state& s) const override;
  [[nodiscard]] std::optional<std::uint8_t> known_byte(const state& s) const override;
  [[nodiscard]] plain_place plain(const state& s) const override;
  [[nodiscard]] std::uint32_t free_tokens(const state& s) const override;
  void pass_free_token(state& s) const override;
  [[nodiscard]] bool stands(const state& s) const override;
  [[nodiscard]] bool is_possible(const state& s) const override;

  /// Only where it stands: the span follows as `free_count` tokens that the model is asked about, or, with 0, it is in
  /// its place already.
  void resume(state& s, std::uint32_t free_count) const;
  [[nodiscard]] copy::program_state position(const state& s) const;

 private:
  [[nodiscard]] static state pack(const copy::program_state& p, std::uint32_t free_count);

  copy::program_machine programs_;
};

}  // namespace redline::grammar
