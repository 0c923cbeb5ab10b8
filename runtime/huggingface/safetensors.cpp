#include "runtime/huggingface/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/base/hex.hpp"
#include "runtime/huggingface/json_object.hpp"

namespace redline::huggingface {
namespace {

static_assert(std::endian::native == std::endian::little, "the header's length is copied out as it lies");

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t header_bytes_max = 32U
                                           << 20;  // two hundred thousand tensors; the largest models have thousands
constexpr std::size_t dimensions_max = 8;
constexpr std::string_view metadata_name = "__metadata__";

struct element_type {
  std::string_view name;
  std::uint64_t size_bytes;
};
// More types than can be converted: a file may contain a counter or a mask in addition to its weights.
constexpr auto element_types = std::to_array<element_type>({
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
    {"U16", 2},
    {"I16", 2},
    {"F16", 2},
    {"BF16", 2},
    {"U32", 4},
    {"I32", 4},
    {"F32", 4},
    {"U64", 8},
    {"I64", 8},
    {"F64", 8},
});

const element_type* find_element_type(std::string_view name) {
  const auto it =
      std::find_if(element_types.begin(), element_types.end(), [&](const auto& e) { return e.name == name; });
  return it == element_types.end() ? nullptr : &*it;
}

/// Reads the numbers of a member such as "shape".
result<std::vector<std::uint64_t>> numbers(const json_object& entry, std::string_view name, std::size_t count_max) {
  REDLINE_TRY_ASSIGN(const json* found, entry.array(name));
  std::vector<std::uint64_t> out;
  if (found->size() > count_max) {
    return entry.malformed(
        name, "expected at most " + std::to_string(count_max) + " numbers, found " + std::to_string(found->size()));
  }
  for (const json& number : *found) {
    if (!number.is_number_unsigned())
      return entry.malformed(name, "expected whole numbers, found " + show_json(number));
    out.push_back(number.get<std::uint64_t>());
  }
  return out;
}

/// The size in bytes of a tensor of this shape.
result<std::uint64_t> size_of(const json_object& entry, const element_type& type,
                              std::span<const std::uint64_t> shape) {
  std::uint64_t size = type.size_bytes;
  for (const std::uint64_t dimension : shape) {
    if (__builtin_mul_overflow(size, dimension, &size)) {
      return entry.malformed("shape", "expected fewer than 2^64 bytes, found " + shape_text(shape));
    }
  }
  return size;
}

result<safetensor> read_tensor(const json_object& entry, std::span<const std::byte> data) {
  REDLINE_TRY_ASSIGN(const std::string type_name, entry.text("dtype"));
  const element_type* type = find_element_type(type_name);
  if (type == nullptr) return entry.unsupported("dtype", "unknown type " + quote_bytes(type_name));
  REDLINE_TRY_ASSIGN(std::vector<std::uint64_t> shape, numbers(entry, "shape", dimensions_max));
  REDLINE_TRY_ASSIGN(const std::uint64_t size, size_of(entry, *type, shape));
  REDLINE_TRY_ASSIGN(const std::vector<std::uint64_t> range, numbers(entry, "data_offsets", 2));
  if (range.size() != 2 || range[0] > range[1] || range[1] > data.size()) {
    return entry.malformed("data_offsets", "expected a begin and an end within " + std::to_string(data.size()) +
                                               " bytes, found " + shape_text(range));
  }
  if (range[1] - range[0] != size) {
    return entry.malformed("data_offsets", "expected " + std::to_string(size) + " bytes for " + type_name + " " +
                                               shape_text(shape) + ", found " + std::to_string(range[1] - range[0]));
  }
  return safetensor{type->name, std::move(shape), data.subspan(range[0], size)};
}

/// The tensors' ranges must be contiguous from the first byte of the data to the last.
result<void> check_ranges(const std::map<std::string, safetensor, std::less<>>& tensors,
                          std::span<const std::byte> data, const std::string& path) {
  std::vector<const std::pair<const std::string, safetensor>*> ordered;
  for (const auto& entry : tensors) ordered.push_back(&entry);
  const auto begin_of = [&](const auto* t) { return static_cast<std::uint64_t>(t->second.bytes.data() - data.data()); };
  std::sort(ordered.begin(), ordered.end(), [&](const auto* a, const auto* b) {
    return std::pair(begin_of(a), a->second.bytes.size()) < std::pair(begin_of(b), b->second.bytes.size());
  });
  std::uint64_t end = 0;
  for (const auto* t : ordered) {
    if (begin_of(t) != end) {
      return failure{errc::file_malformed, path + ": " + quote_bytes(t->first) +
                                               ".data_offsets: expected to begin at " + std::to_string(end) +
                                               ", the end of the previous tensor, found " +
                                               std::to_string(begin_of(t))};
    }
    end += t->second.bytes.size();
  }
  if (end == data.size()) return {};
  return failure{errc::file_malformed, path + ": expected the last tensor to end at the end of the file, found " +
                                           std::to_string(data.size() - end) + " bytes after it"};
}

}  // namespace

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (const std::uint64_t n : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  return text + "]";
}

result<std::shared_ptr<const safetensors_file>> safetensors_file::open(const std::string& path) {
  const std::shared_ptr<safetensors_file> file(new safetensors_file(path));
  REDLINE_TRY_ASSIGN(file->mapping_, mapped_file::open(path));
  REDLINE_TRY(file->parse(file->mapping_->bytes()));
  return std::shared_ptr<const safetensors_file>(file);
}

result<std::shared_ptr<const safetensors_file>> safetensors_file::from_bytes(std::span<const std::byte> bytes,
                                                                             const std::string& path) {
  const std::shared_ptr<safetensors_file> file(new safetensors_file(path));
  REDLINE_TRY(file->parse(bytes));
  return std::shared_ptr<const safetensors_file>(file);
}

result<void> safetensors_file::parse(std::span<const std::byte> bytes) {
  std::uint64_t header_bytes = 0;
  if (bytes.size() >= length_bytes) std::memcpy(&header_bytes, bytes.data(), length_bytes);
  const std::uint64_t most = bytes.size() < length_bytes ? 0 : std::min(bytes.size() - length_bytes, header_bytes_max);
  if (header_bytes == 0 || header_bytes > most) {
    return failure{errc::file_malformed, path_ + ": header length: expected 1 to " + std::to_string(most) +
                                             " (the bytes left in the file, at most 32 MiB), found " +
                                             std::to_string(header_bytes)};
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data() + length_bytes), header_bytes);
  REDLINE_TRY_ASSIGN(const json document, parse_document(text, path_));
  REDLINE_TRY_ASSIGN(const json_object header, json_object::of(document, path_));
  const auto data = bytes.subspan(length_bytes + header_bytes);
  for (const auto& [name, value] : document.items()) {
    if (name == metadata_name) continue;
    REDLINE_TRY_ASSIGN(const json_object entry, json_object::of(value, path_, quote_bytes(name)));
    REDLINE_TRY_ASSIGN(safetensor t, read_tensor(entry, data));
    tensors_.emplace(name, std::move(t));
  }
  return check_ranges(tensors_, data, path_);
}

void safetensors_file::drop_from_memory(const safetensor& t) const {
  if (mapping_ != nullptr) mapping_->drop_from_memory(t.bytes);
}

}  // namespace redline::huggingface
