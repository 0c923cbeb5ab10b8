#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline::draft {

/// Lookup like prompt_lookup's, but of bytes in texts that are known from the start: for an answer that copies them in
/// another spelling, whose tokens are others. Immutable. Built in linear time; 9 bytes for a byte.
class text_lookup {
 public:
  using name_indices = std::map<std::string, std::size_t, std::less<>>;
  /// Adds up to `bytes_max`; of more texts, and of longer ones, the last bytes. names: which texts have one.
  static constexpr std::size_t bytes_default = std::size_t{2} << 20;
  explicit text_lookup(const std::vector<std::string>& texts, std::size_t bytes_max = bytes_default,
                       const name_indices& names = {});

  struct finding {
    std::uint32_t place = 0;    // what followed begins here
    std::uint32_t matched = 0;  // bytes before it that are those of the tail, at most matched_max
  };
  /// Where the end of `tail` stands. The longest agreement wins, of at least gram_bytes, and of equal ones the nearest
  /// to `near`, those after it first. Nearly constant time: looks at occurrences_max places.
  [[nodiscard]] std::optional<finding> find(std::string_view tail, std::uint32_t near) const;
  /// Where the end of `tail` stands shortly after `near`: the last resync_bytes of it or more.
  [[nodiscard]] std::optional<finding> find_after(std::string_view tail, std::uint32_t near) const;
  /// What stands at a place, up to the end of its text.
  [[nodiscard]] std::string_view from(std::uint32_t place, std::size_t bytes_max) const;
  /// The line feed before a place or the beginning of its text, but at most resync_reach before it.
  [[nodiscard]] std::uint32_t line_before(std::uint32_t place) const;

  /// Where the last text begins; 0: there is none.
  [[nodiscard]] std::uint32_t last_begin() const { return last_begin_; }
  /// Where the text of that name begins.
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
  std::vector<std::uint32_t> last_;    // by hash: the last place after such a gram; 0: none
  std::vector<std::uint32_t> before_;  // by place: the one before it with the same hash
  std::vector<bool> is_end_;           // by place: what stands there is such a mark
};

}  // namespace redline::draft
