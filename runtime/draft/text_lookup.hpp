#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline::draft {

/// Lookup like prompt_lookup's, but on bytes of texts that are known from the start: for answers that copy them with
/// other escapes, and therefore other tokens. Immutable. Built in linear time; takes 9 bytes per byte.
class text_lookup {
 public:
  using name_indices = std::map<std::string, std::size_t, std::less<>>;
  /// Adds up to `bytes_max` bytes, the last ones of the texts if there are more. names: the texts that have a name.
  static constexpr std::size_t bytes_default = std::size_t{2} << 20;
  explicit text_lookup(const std::vector<std::string>& texts, std::size_t bytes_max = bytes_default,
                       const name_indices& names = {});

  struct finding {
    std::uint32_t place = 0;    // where the continuation begins
    std::uint32_t matched = 0;  // bytes before it that match the tail, at most matched_max
  };
  /// Finds the end of `tail`. The longest match of at least gram_bytes wins; on a tie the one nearest to `near`,
  /// preferring those after it. Nearly constant time: it looks at occurrences_max positions.
  [[nodiscard]] std::optional<finding> find(std::string_view tail, std::uint32_t near) const;
  /// Finds the end of `tail`, at least its last resync_bytes, shortly after `near`.
  [[nodiscard]] std::optional<finding> find_after(std::string_view tail, std::uint32_t near) const;
  /// The text at a position, up to its end.
  [[nodiscard]] std::string_view from(std::uint32_t place, std::size_t bytes_max) const;
  /// The line feed before a position or the beginning of its text, but at most resync_reach before it.
  [[nodiscard]] std::uint32_t line_before(std::uint32_t place) const;

  /// Where the last text begins; 0 if there is none.
  [[nodiscard]] std::uint32_t last_begin() const { return last_begin_; }
  /// Where the text with that name begins.
  [[nodiscard]] std::optional<std::uint32_t> begin_of(std::string_view name) const;

  static constexpr std::size_t gram_bytes = 8;
  static constexpr std::size_t matched_max = 64;
  static constexpr std::size_t occurrences_max = 64;
  static constexpr std::size_t resync_bytes = 3;
  static constexpr std::size_t resync_reach = 512;

 private:
  [[nodiscard]] std::size_t slot_of(std::string_view gram) const;
  [[nodiscard]] std::uint32_t agreement(std::uint32_t place, std::string_view tail) const;

  std::uint32_t last_begin_ = 0;
  std::map<std::string, std::uint32_t, std::less<>> named_;
  std::string all_;                    // the texts, with an end mark after each
  std::vector<std::uint32_t> last_;    // by hash: the last position after such a gram; 0 if none
  std::vector<std::uint32_t> before_;  // by position: the previous one with the same hash
  std::vector<bool> is_end_;           // by position: whether it is an end mark
};

}  // namespace redline::draft
