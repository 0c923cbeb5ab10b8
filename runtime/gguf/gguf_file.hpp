#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/mapped_file.hpp"
#include "runtime/base/result.hpp"

namespace redline::gguf {

/// GGUF metadata value types, with the numbers of the file format.
enum class value_type : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

/// Tensor storage types that a reader must know to check sizes, with the numbers of the file format.
enum class tensor_type : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  mxfp4 = 39,
};

/// "F32", "Q8_0", ...; "type 99" for an unknown number.
std::string name_of(tensor_type type);

struct value;
/// A homogeneous array. Strings are views into the mapped file; numbers are stored as values.
struct array {
  value_type element_type = value_type::u8;
  std::vector<std::string_view> strings;  // if element_type is string
  std::vector<double> numbers;            // any other type, converted (exact up to 2^53)
  [[nodiscard]] std::size_t size() const {
    return element_type == value_type::string ? strings.size() : numbers.size();
  }
};

/// One metadata value. Integers of any width arrive as int64 or uint64, floats as double.
struct value {
  value_type type = value_type::u8;
  std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, array> data;
};

/// One tensor: a name, its dimensions and its bytes inside the mapping.
struct tensor {
  std::string_view name;
  tensor_type type = tensor_type::f32;
  /// Innermost first, as in the file: a weight matrix [rows, columns] in row-major order has {columns, rows}.
  std::vector<std::uint64_t> dimensions;
  std::span<const std::byte> bytes;

  [[nodiscard]] std::uint64_t element_count() const;
};

/// A GGUF v3 (or v2) file, mapped read-only. `open` validates everything: every count, length, type, offset and size is
/// checked against the file's length before use, so accessors cannot read outside the mapping. Returned views are valid
/// as long as this object exists.
class gguf_file {
 public:
  /// Maps and validates. The failure names the field: "models/x.gguf: tensor 3 'blk.0.attn_q.weight': offset 4096 ...".
  /// For a model in several files ("x-00001-of-00003.gguf") any of them may be named: metadata comes from the first,
  /// tensors from all.
  static result<std::shared_ptr<const gguf_file>> open(const std::string& path);
  /// Reads bytes in memory (tests, fuzzing); `name` replaces the path in messages.
  static result<std::shared_ptr<const gguf_file>> from_bytes(std::vector<std::byte> bytes, std::string name);

  ~gguf_file() = default;
  gguf_file(const gguf_file&) = delete;
  gguf_file& operator=(const gguf_file&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint32_t version() const { return version_; }
  /// The total size of all its files.
  [[nodiscard]] std::uint64_t size_bytes() const;

  [[nodiscard]] const std::map<std::string, value, std::less<>>& metadata() const { return metadata_; }
  [[nodiscard]] const std::vector<tensor>& tensors() const { return tensors_; }
  /// All metadata as a GGUF file without tensors, for readers that do not need the weights. `from_bytes` reads it.
  [[nodiscard]] std::string copy_header() const;
  /// Replaces the file's chat template by this one.
  [[nodiscard]] std::string copy_header(const std::string& chat_template) const;

  /// nullptr if absent.
  [[nodiscard]] const value* find(std::string_view key) const;
  [[nodiscard]] const tensor* find_tensor(std::string_view name) const;

  /// Typed metadata access. A missing key or a value of another kind is a failure that names the key. The overloads
  /// with a default return it if the key is missing, and still fail on a wrong type. Integers accept any integer type
  /// that fits; `get_float` also accepts integers.
  [[nodiscard]] result<std::string_view> get_string(std::string_view key) const;
  [[nodiscard]] result<std::uint64_t> get_unsigned(std::string_view key) const;
  [[nodiscard]] result<double> get_float(std::string_view key) const;
  [[nodiscard]] result<bool> get_bool(std::string_view key) const;
  [[nodiscard]] result<std::uint64_t> get_unsigned(std::string_view key, std::uint64_t otherwise) const;
  [[nodiscard]] result<double> get_float(std::string_view key, double otherwise) const;
  [[nodiscard]] result<bool> get_bool(std::string_view key, bool otherwise) const;
  [[nodiscard]] result<const array*> get_array(std::string_view key) const;

  /// Fails if the file was changed after it was opened.
  [[nodiscard]] result<void> check_unchanged() const;
  /// Advises the kernel that the mapped bytes of `t` will not be read again soon (after repacking).
  void drop_from_memory(const tensor& t) const;

 private:
  gguf_file() = default;
  static result<std::shared_ptr<gguf_file>> open_one(const std::string& path);
  static result<std::shared_ptr<gguf_file>> parse(std::shared_ptr<gguf_file> file);
  result<void> add_part(std::shared_ptr<const gguf_file> part, std::uint64_t number, std::uint64_t count);

  std::string path_;
  std::uint32_t version_ = 0;
  std::vector<std::byte> owned_;          // used when read from memory
  std::unique_ptr<mapped_file> mapping_;  // used when mapped
  std::span<const std::byte> bytes_;
  std::uint64_t metadata_end_ = 0;  // where the tensors' entries begin
  std::map<std::string, value, std::less<>> metadata_;
  std::vector<tensor> tensors_;
  std::map<std::string_view, std::size_t> tensor_index_;
  std::vector<std::shared_ptr<const gguf_file>> parts_;  // the other files of a split model
};

}  // namespace redline::gguf
