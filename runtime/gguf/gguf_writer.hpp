#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/gguf/gguf_file.hpp"

namespace redline::gguf {

/// Takes the next bytes of a payload.
using payload_sink = std::function<result<void>(std::span<const std::byte>)>;
/// Makes a payload: calls the sink with its bytes in order, in pieces of any size, and returns the sink's failures.
using payload_source = std::function<result<void>(const payload_sink&)>;

/// Writes metadata and tensors to a GGUF v3 file, in the order they are added. It checks nothing, so that tests can
/// also write broken files; `gguf_file` validates.
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
  /// Adds a value as read from a file; integers beyond 2^53 inside arrays are rounded, see `array`.
  void put_value(std::string_view key, const value& any);
  /// Adds a value of any type, known or not, with the bytes that follow it.
  void put_raw(std::string_view key, std::uint32_t type_number, std::span<const std::byte> payload);

  /// `dimensions` innermost first. `payload` is copied.
  void add_tensor(std::string_view name, tensor_type type, std::span<const std::uint64_t> dimensions,
                  std::span<const std::byte> payload);
  /// A payload of `payload_bytes` that is made while the file is written and is never in memory as a whole. The source
  /// is called once each time the file is written.
  void add_tensor(std::string_view name, tensor_type type, std::span<const std::uint64_t> dimensions,
                  std::uint64_t payload_bytes, payload_source source);

  /// Sets the alignment of tensors and of the data section. Writes no metadata: a file whose alignment is not 32 also
  /// needs `put_u32("general.alignment", ...)`.
  void align_to(std::uint64_t alignment) { alignment_ = alignment; }

  /// The file's bytes, for copied payloads; payloads with a source come out empty.
  [[nodiscard]] std::vector<std::byte> bytes() const;
  /// Replaces the file at `path` atomically (replacement_file.hpp). progress(done, all) reports payload bytes from time
  /// to time.
  [[nodiscard]] result<void> write(const std::string& path,
                                   const std::function<void(std::uint64_t, std::uint64_t)>& progress = {}) const;

 private:
  struct entry {
    std::string name;
    std::uint32_t type;
    std::vector<std::uint64_t> dimensions;
    std::vector<std::byte> payload;
    std::uint64_t payload_bytes;
    payload_source source;  // empty if `payload` contains the bytes
  };

  /// Everything before the first payload.
  [[nodiscard]] std::vector<std::byte> header() const;
  void start(std::string_view key, value_type type);

  std::uint64_t alignment_ = 32;
  std::uint64_t metadata_count_ = 0;
  std::vector<std::byte> metadata_;
  std::vector<entry> tensors_;
};

}  // namespace redline::gguf
