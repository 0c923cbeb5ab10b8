#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/gguf/gguf_file.hpp"

namespace redline::gguf {

/// Puts metadata and tensors into a GGUF v3 file, in the order they are added. It writes what it is told and checks
/// nothing, so that tests can also write broken files; `gguf_file` is the judge.
class gguf_writer {
 public:
  void put_u32(std::string_view key, std::uint32_t number);
  void put_u64(std::string_view key, std::uint64_t number);
  void put_i32(std::string_view key, std::int32_t number);
  void put_f32(std::string_view key, float number);
  void put_bool(std::string_view key, bool flag);
  void put_string(std::string_view key, std::string_view text);
  void put_strings(std::string_view key, std::span<const std::string> texts);
  void put_i32s(std::string_view key, std::span<const std::int32_t> numbers);
  void put_f32s(std::string_view key, std::span<const float> numbers);
  /// Any value type, known or not, with the bytes that follow it.
  void put_raw(std::string_view key, std::uint32_t type_number, std::span<const std::byte> payload);

  /// `dimensions` innermost first. `payload` is copied.
  void add_tensor(std::string_view name, tensor_type type, std::span<const std::uint64_t> dimensions,
                  std::span<const std::byte> payload);

  /// Where tensors start, and what the data section starts at. Writes no metadata: a file whose alignment is not 32
  /// also needs `put_u32("general.alignment", ...)`.
  void align_to(std::uint64_t alignment) { alignment_ = alignment; }

  [[nodiscard]] std::vector<std::byte> bytes() const;
  [[nodiscard]] result<void> write(const std::string& path) const;

 private:
  struct entry {
    std::string name;
    std::uint32_t type;
    std::vector<std::uint64_t> dimensions;
    std::vector<std::byte> payload;
  };

  void start(std::string_view key, value_type type);

  std::uint64_t alignment_ = 32;
  std::uint64_t metadata_count_ = 0;
  std::vector<std::byte> metadata_;
  std::vector<entry> tensors_;
};

}  // namespace redline::gguf
