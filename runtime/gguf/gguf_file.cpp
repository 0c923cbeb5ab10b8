#include "runtime/gguf/gguf_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/base/hex.hpp"
#include "runtime/gguf/gguf_writer.hpp"
#include "runtime/gguf/split_name.hpp"

namespace redline::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied out of a little-endian file as they lie");

constexpr std::uint32_t magic = 0x46554747;        // "GGUF"
constexpr std::ptrdiff_t tensor_count_offset = 8;  // after magic and version
constexpr std::uint64_t key_bytes_max = 65535;
constexpr std::uint64_t tensor_name_bytes_max = 64;
constexpr std::uint32_t dimensions_max = 4;
constexpr std::uint64_t default_alignment = 32;
constexpr std::uint64_t alignment_max = 65536;
// The minimum size of an entry in the file: limits a count before anything is allocated for it.
constexpr std::uint64_t smallest_entry_bytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t smallest_tensor_bytes = 8 + 1 + 4 + 8 + 4 + 8;

struct tensor_layout {
  std::uint32_t number;
  std::string_view name;
  std::uint64_t block_elements;
  std::uint64_t block_bytes;
};

// More types than Redline computes with: a file that contains one of the others still shows its metadata, and loading
// the tensor fails with its name.
constexpr auto layouts = std::to_array<tensor_layout>({
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},     {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},     {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},  {14, "Q6_K", 256, 210},
    {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74}, {18, "IQ3_XXS", 256, 98},
    {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110}, {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},       {26, "I32", 1, 4},
    {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},  {30, "BF16", 1, 2},
    {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
});

const tensor_layout* layout_of(std::uint32_t number) {
  const auto it = std::find_if(layouts.begin(), layouts.end(), [&](const auto& l) { return l.number == number; });
  return it == layouts.end() ? nullptr : &*it;
}

/// Bytes of one value of a fixed-size type; 0 for strings, arrays and unknown types.
std::uint64_t fixed_bytes(value_type type) {
  switch (type) {
    case value_type::u8:
    case value_type::i8:
    case value_type::boolean:
      return 1;
    case value_type::u16:
    case value_type::i16:
      return 2;
    case value_type::u32:
    case value_type::i32:
    case value_type::f32:
      return 4;
    case value_type::u64:
    case value_type::i64:
    case value_type::f64:
      return 8;
    case value_type::string:
    case value_type::array:
      return 0;
  }
  return 0;
}

constexpr std::uint64_t parts_max = 512;     // each part is mapped
constexpr std::size_t shown_bytes_max = 80;  // bytes of a name shown in a message

/// Reads forward through the header. Every read is checked; the failure names the file, what was read and where.
class reader {
 public:
  reader(const std::string& path, std::span<const std::byte> bytes) : path_(path), bytes_(bytes) {}

  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] std::uint64_t left() const { return bytes_.size() - offset_; }

  [[nodiscard]] failure malformed(const std::string& field, const std::string& why) const {
    return {errc::file_malformed, path_ + ": " + field + ": " + why};
  }
  [[nodiscard]] failure unsupported(const std::string& field, const std::string& why) const {
    return {errc::unsupported_format, path_ + ": " + field + ": " + why};
  }

  template<class Number>
  result<Number> number(const std::string& field) {
    if (left() < sizeof(Number)) return cut_short(field, sizeof(Number));
    Number out;
    std::memcpy(&out, bytes_.data() + offset_, sizeof out);
    offset_ += sizeof out;
    return out;
  }

  result<std::string_view> string(const std::string& field) {
    REDLINE_TRY_ASSIGN(const auto length, number<std::uint64_t>(field));
    if (length > left()) return cut_short(field + ": string length", length);
    const std::string_view out(reinterpret_cast<const char*>(bytes_.data() + offset_), length);
    offset_ += length;
    return out;
  }

  /// Reads a string that serves as a name: not empty, at most `bytes_max`, without NUL.
  result<std::string_view> name(const std::string& field, std::uint64_t bytes_max) {
    REDLINE_TRY_ASSIGN(const auto out, string(field));
    if (out.empty()) return malformed(field, "is empty");
    if (out.size() > bytes_max) {
      return malformed(field, "has " + std::to_string(out.size()) + " bytes, at most " + std::to_string(bytes_max) +
                                  " are allowed: " + quote_bytes(out, shown_bytes_max));
    }
    if (out.find('\0') != std::string_view::npos)
      return malformed(field, "contains a NUL byte: " + quote_bytes(out, shown_bytes_max));
    return out;
  }

 private:
  failure cut_short(const std::string& field, std::uint64_t wanted) const {
    return malformed(field, "expected " + std::to_string(wanted) + " bytes at offset " + std::to_string(offset_) +
                                ", found only " + std::to_string(left()) + " left in the file");
  }

  const std::string& path_;
  std::span<const std::byte> bytes_;
  std::uint64_t offset_ = 0;
};

using scalar = std::variant<std::uint64_t, std::int64_t, double, bool>;

template<class Wide, class Narrow>
result<scalar> widened(reader& in, const std::string& field) {
  REDLINE_TRY_ASSIGN(const auto number, in.number<Narrow>(field));
  return scalar(static_cast<Wide>(number));
}

result<scalar> read_scalar(reader& in, value_type type, const std::string& field) {
  switch (type) {
    case value_type::u8:
      return widened<std::uint64_t, std::uint8_t>(in, field);
    case value_type::u16:
      return widened<std::uint64_t, std::uint16_t>(in, field);
    case value_type::u32:
      return widened<std::uint64_t, std::uint32_t>(in, field);
    case value_type::u64:
      return widened<std::uint64_t, std::uint64_t>(in, field);
    case value_type::i8:
      return widened<std::int64_t, std::int8_t>(in, field);
    case value_type::i16:
      return widened<std::int64_t, std::int16_t>(in, field);
    case value_type::i32:
      return widened<std::int64_t, std::int32_t>(in, field);
    case value_type::i64:
      return widened<std::int64_t, std::int64_t>(in, field);
    case value_type::f32:
      return widened<double, float>(in, field);
    case value_type::f64:
      return widened<double, double>(in, field);
    case value_type::boolean: {
      REDLINE_TRY_ASSIGN(const auto byte, in.number<std::uint8_t>(field));
      if (byte > 1) return in.malformed(field, "expected 0 or 1 for a boolean, found " + std::to_string(byte));
      return scalar(byte == 1);
    }
    case value_type::string:
    case value_type::array:
      break;
  }
  return in.malformed(field, "is not a scalar");
}

result<value_type> read_value_type(reader& in, const std::string& field) {
  REDLINE_TRY_ASSIGN(const auto number, in.number<std::uint32_t>(field + ": value type"));
  if (number > static_cast<std::uint32_t>(value_type::f64)) {
    return in.malformed(field, "unknown value type " + std::to_string(number));
  }
  return static_cast<value_type>(number);
}

result<array> read_array(reader& in, const std::string& field) {
  array out;
  REDLINE_TRY_ASSIGN(out.element_type, read_value_type(in, field + ": array element"));
  if (out.element_type == value_type::array) return in.unsupported(field, "arrays of arrays are not supported");
  REDLINE_TRY_ASSIGN(const auto count, in.number<std::uint64_t>(field + ": array length"));
  const bool strings = out.element_type == value_type::string;
  const std::uint64_t element_bytes = strings ? 8 : fixed_bytes(out.element_type);
  if (count > in.left() / element_bytes) {
    return in.malformed(field, "array length " + std::to_string(count) + " needs at least " +
                                   std::to_string(element_bytes) + " bytes each, but the file has only " +
                                   std::to_string(in.left()) + " left");
  }
  if (strings) {
    out.strings.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      REDLINE_TRY_ASSIGN(const auto text, in.string(field));
      out.strings.push_back(text);
    }
    return out;
  }
  out.numbers.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    REDLINE_TRY_ASSIGN(const auto element, read_scalar(in, out.element_type, field));
    out.numbers.push_back(std::visit([](auto number) { return static_cast<double>(number); }, element));
  }
  return out;
}

result<value> read_value(reader& in, const std::string& field) {
  value out;
  REDLINE_TRY_ASSIGN(out.type, read_value_type(in, field));
  if (out.type == value_type::string) {
    REDLINE_TRY_ASSIGN(out.data, in.string(field));
  } else if (out.type == value_type::array) {
    REDLINE_TRY_ASSIGN(out.data, read_array(in, field));
  } else {
    REDLINE_TRY_ASSIGN(const auto number, read_scalar(in, out.type, field));
    std::visit([&](auto plain) { out.data = plain; }, number);
  }
  return out;
}

result<std::uint32_t> read_header(reader& in) {
  if (in.left() == 0) return in.malformed("header", "the file is empty");
  REDLINE_TRY_ASSIGN(const auto found, in.number<std::uint32_t>("magic"));
  if (found != magic) return in.malformed("magic", "expected 'GGUF', found other bytes: this is not a GGUF file");
  REDLINE_TRY_ASSIGN(const auto version, in.number<std::uint32_t>("version"));
  if (version == 2 || version == 3) return version;
  const std::uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= 3) {
    return in.unsupported(
        "version", "expected a little-endian file, found a big-endian one of version " + std::to_string(swapped));
  }
  return in.unsupported("version", "expected 2 or 3, found " + std::to_string(version));
}

/// Reads a count of entries, and refuses one that the rest of the file cannot contain.
result<std::uint64_t> read_count(reader& in, const std::string& field, std::uint64_t smallest_bytes) {
  REDLINE_TRY_ASSIGN(const auto count, in.number<std::uint64_t>(field));
  if (count > in.left() / smallest_bytes) {
    return in.malformed(field, std::to_string(count) + " entries of at least " + std::to_string(smallest_bytes) +
                                   " bytes cannot fit into the " + std::to_string(in.left()) + " bytes left");
  }
  return count;
}

/// A tensor's entry in the header; its bytes are found when the start of the data is known.
struct tensor_entry {
  tensor described;
  std::string field;  // "tensor 3 'blk.0.attn_q.weight'"
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
};

result<std::uint64_t> checked_size(const reader& in, const tensor_entry& entry, const tensor_layout& layout) {
  std::uint64_t elements = 1;
  for (const std::uint64_t dimension : entry.described.dimensions) {
    if (dimension == 0) return in.malformed(entry.field, "has a dimension of 0");
    if (__builtin_mul_overflow(elements, dimension, &elements)) {
      return in.malformed(entry.field, "the product of its dimensions overflows");
    }
  }
  if (elements > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return in.malformed(entry.field, "the product of its dimensions overflows");
  }
  const std::uint64_t columns = entry.described.dimensions.front();
  if (columns % layout.block_elements != 0) {
    return in.malformed(entry.field, "rows of " + std::to_string(columns) + " elements are not whole blocks of " +
                                         std::to_string(layout.block_elements) + " (" + std::string(layout.name) + ")");
  }
  std::uint64_t size_bytes = 0;
  if (__builtin_mul_overflow(elements / layout.block_elements, layout.block_bytes, &size_bytes)) {
    return in.malformed(entry.field, "its size in bytes overflows");
  }
  return size_bytes;
}

result<tensor_entry> read_tensor_entry(reader& in, std::uint64_t index) {
  tensor_entry out;
  out.field = "tensor " + std::to_string(index);
  REDLINE_TRY_ASSIGN(out.described.name, in.name(out.field + ": name", tensor_name_bytes_max));
  out.field += " " + quote_bytes(out.described.name, shown_bytes_max);
  REDLINE_TRY_ASSIGN(const auto dimension_count, in.number<std::uint32_t>(out.field + ": dimension count"));
  if (dimension_count == 0 || dimension_count > dimensions_max) {
    return in.malformed(out.field, "expected 1 to " + std::to_string(dimensions_max) + " dimensions, found " +
                                       std::to_string(dimension_count));
  }
  for (std::uint32_t i = 0; i < dimension_count; ++i) {
    REDLINE_TRY_ASSIGN(const auto dimension, in.number<std::uint64_t>(out.field + ": dimension"));
    out.described.dimensions.push_back(dimension);
  }
  REDLINE_TRY_ASSIGN(const auto type, in.number<std::uint32_t>(out.field + ": type"));
  const tensor_layout* layout = layout_of(type);
  if (layout == nullptr) return in.unsupported(out.field, "unknown tensor type " + std::to_string(type));
  out.described.type = static_cast<tensor_type>(type);
  REDLINE_TRY_ASSIGN(out.offset, in.number<std::uint64_t>(out.field + ": offset"));
  REDLINE_TRY_ASSIGN(out.size_bytes, checked_size(in, out, *layout));
  return out;
}

/// Sets the tensors' bytes in `data`, the file from the start of the data section on.
result<void> place(const reader& in, std::vector<tensor_entry>& entries, std::span<const std::byte> data,
                   std::uint64_t alignment) {
  for (tensor_entry& entry : entries) {
    if (entry.offset % alignment != 0) {
      return in.malformed(entry.field, "offset " + std::to_string(entry.offset) +
                                           " is not a multiple of the alignment " + std::to_string(alignment));
    }
    if (entry.offset > data.size() || entry.size_bytes > data.size() - entry.offset) {
      return in.malformed(entry.field, "offset " + std::to_string(entry.offset) + " and " +
                                           std::to_string(entry.size_bytes) + " bytes exceed the data section of " +
                                           std::to_string(data.size()) + " bytes");
    }
    entry.described.bytes = data.subspan(entry.offset, entry.size_bytes);
  }
  std::vector<const tensor_entry*> ordered;
  for (const tensor_entry& entry : entries) ordered.push_back(&entry);
  std::sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < ordered.size(); ++i) {
    const tensor_entry& before = *ordered[i - 1];
    if (before.offset + before.size_bytes > ordered[i]->offset) {
      return in.malformed(ordered[i]->field, "its bytes overlap those of " + before.field);
    }
  }
  return {};
}

}  // namespace

std::string name_of(tensor_type type) {
  const tensor_layout* layout = layout_of(static_cast<std::uint32_t>(type));
  if (layout != nullptr) return std::string(layout->name);
  return "type " + std::to_string(static_cast<std::uint32_t>(type));
}

std::uint64_t tensor::element_count() const {
  std::uint64_t count = 1;
  for (const std::uint64_t dimension : dimensions) count *= dimension;
  return count;
}

result<std::shared_ptr<const gguf_file>> gguf_file::open(const std::string& path) {
  const auto name = parse_split_name(path);
  REDLINE_TRY_ASSIGN(auto file, open_one(name ? name->of(1) : path));
  REDLINE_TRY_ASSIGN(const auto count, file->get_unsigned("split.count", 1));
  if (count <= 1) {  // not a part of a split model, whatever its name is
    if (name && name->number != 1) {
      REDLINE_TRY_ASSIGN(file, open_one(path));
    }
    return std::shared_ptr<const gguf_file>(std::move(file));
  }
  const std::string field = file->path_ + ": metadata 'split.count': ";
  if (!name || name->count != count) {
    return failure{
        errc::file_malformed,
        field + "the model is split into several files: expected names that end in " +
            split_name{.stem = "", .count = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, 99999))}.of(1) +
            " and so on; restore the original names"};
  }
  if (count > parts_max) {
    return failure{errc::unsupported_format, field + "expected at most " + std::to_string(parts_max) +
                                                 " files of one model, found " + std::to_string(count)};
  }
  for (std::uint32_t part = 2; part <= count; ++part) {
    REDLINE_TRY_ASSIGN(auto opened, open_one(name->of(part)));
    REDLINE_TRY(file->add_part(std::move(opened), part, count));
  }
  REDLINE_TRY_ASSIGN(const auto tensors, file->get_unsigned("split.tensors.count", file->tensors_.size()));
  if (tensors != file->tensors_.size()) {
    return failure{errc::file_malformed, file->path_ + ": metadata 'split.tensors.count': expected the " +
                                             std::to_string(file->tensors_.size()) + " tensors that its " +
                                             std::to_string(count) + " files have, found " + std::to_string(tensors)};
  }
  return std::shared_ptr<const gguf_file>(std::move(file));
}

result<void> gguf_file::add_part(std::shared_ptr<const gguf_file> part, std::uint64_t number, std::uint64_t count) {
  REDLINE_TRY_ASSIGN(const auto its_count, part->get_unsigned("split.count"));
  REDLINE_TRY_ASSIGN(const auto its_number, part->get_unsigned("split.no"));
  if (its_count != count || its_number != number - 1) {
    return failure{errc::file_malformed, part->path_ + ": metadata 'split.no': expected part " +
                                             std::to_string(number) + " of " + std::to_string(count) + ", found " +
                                             std::to_string(its_number + 1) + " of " + std::to_string(its_count)};
  }
  for (const tensor& t : part->tensors_) {
    if (!tensor_index_.emplace(t.name, tensors_.size()).second) {
      return failure{errc::file_malformed, part->path_ + ": tensor " + quote_bytes(t.name, shown_bytes_max) +
                                               ": another file of the model also contains it"};
    }
    tensors_.push_back(t);
  }
  parts_.push_back(std::move(part));
  return {};
}

std::uint64_t gguf_file::size_bytes() const {
  std::uint64_t sum = bytes_.size();
  for (const auto& part : parts_) sum += part->size_bytes();
  return sum;
}

result<std::shared_ptr<gguf_file>> gguf_file::open_one(const std::string& path) {
  std::shared_ptr<gguf_file> file(new gguf_file);
  file->path_ = path;
  REDLINE_TRY_ASSIGN(file->mapping_, mapped_file::open(path));
  file->bytes_ = file->mapping_->bytes();
  return parse(std::move(file));
}

result<std::shared_ptr<const gguf_file>> gguf_file::from_bytes(std::vector<std::byte> bytes, std::string name) {
  std::shared_ptr<gguf_file> file(new gguf_file);
  file->path_ = std::move(name);
  file->owned_ = std::move(bytes);
  file->bytes_ = file->owned_;
  REDLINE_TRY_ASSIGN(auto parsed, parse(std::move(file)));
  return std::shared_ptr<const gguf_file>(std::move(parsed));
}

result<std::shared_ptr<gguf_file>> gguf_file::parse(std::shared_ptr<gguf_file> file) {
  reader in(file->path_, file->bytes_);
  REDLINE_TRY_ASSIGN(file->version_, read_header(in));
  REDLINE_TRY_ASSIGN(const auto tensor_count, read_count(in, "tensor count", smallest_tensor_bytes));
  REDLINE_TRY_ASSIGN(const auto entry_count, read_count(in, "metadata count", smallest_entry_bytes));

  for (std::uint64_t i = 0; i < entry_count; ++i) {
    REDLINE_TRY_ASSIGN(const auto key, in.name("metadata key " + std::to_string(i), key_bytes_max));
    const std::string field = "metadata " + quote_bytes(key, shown_bytes_max);
    REDLINE_TRY_ASSIGN(auto read, read_value(in, field));
    if (!file->metadata_.emplace(key, std::move(read)).second) return in.malformed(field, "the key appears twice");
  }

  file->metadata_end_ = in.offset();
  std::vector<tensor_entry> entries;
  entries.reserve(tensor_count);
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    REDLINE_TRY_ASSIGN(auto entry, read_tensor_entry(in, i));
    if (!file->tensor_index_.emplace(entry.described.name, i).second) {
      return in.malformed(entry.field, "the name appears twice");
    }
    entries.push_back(std::move(entry));
  }

  REDLINE_TRY_ASSIGN(const auto alignment, file->get_unsigned("general.alignment", default_alignment));
  if (!std::has_single_bit(alignment) || alignment < 8 || alignment > alignment_max) {
    return in.malformed(
        "metadata 'general.alignment'",
        "expected a power of two from 8 to " + std::to_string(alignment_max) + ", found " + std::to_string(alignment));
  }
  // A file without tensors may end right after its header, without padding.
  const std::uint64_t data_start =
      std::min<std::uint64_t>((in.offset() + alignment - 1) / alignment * alignment, file->bytes_.size());
  REDLINE_TRY(place(in, entries, file->bytes_.subspan(data_start), alignment));
  file->tensors_.reserve(entries.size());
  for (tensor_entry& entry : entries) file->tensors_.push_back(std::move(entry.described));
  return file;
}

std::string gguf_file::copy_header() const {
  std::string out(reinterpret_cast<const char*>(bytes_.data()), metadata_end_);
  std::fill_n(out.begin() + tensor_count_offset, sizeof(std::uint64_t), '\0');
  return out;
}

std::string gguf_file::copy_header(const std::string& chat_template) const {
  constexpr std::string_view own = "tokenizer.chat_template";
  gguf_writer out;
  for (const auto& [key, value] : metadata_) {
    if (key != own && !key.starts_with(std::string(own) + ".")) out.put_value(key, value);
  }
  out.put_string(own, chat_template);
  const auto bytes = out.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const value* gguf_file::find(std::string_view key) const {
  const auto it = metadata_.find(key);
  return it == metadata_.end() ? nullptr : &it->second;
}

const tensor* gguf_file::find_tensor(std::string_view name) const {
  const auto it = tensor_index_.find(name);
  return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

namespace {

std::string_view name_of(value_type type) {
  constexpr auto names = std::to_array<std::string_view>(
      {"u8", "i8", "u16", "i16", "u32", "i32", "f32", "boolean", "string", "array", "u64", "i64", "f64"});
  return names[static_cast<std::size_t>(type)];
}

failure missing(const gguf_file& file, std::string_view key) {
  return {errc::file_malformed, file.path() + ": metadata '" + std::string(key) + "' is missing"};
}

failure wrong_kind(const gguf_file& file, std::string_view key, std::string_view wanted, const value& found) {
  return {errc::file_malformed, file.path() + ": metadata '" + std::string(key) + "': expected " + std::string(wanted) +
                                    ", found " + std::string(name_of(found.type))};
}

template<class T>
result<T> exactly(const gguf_file& file, std::string_view key, std::string_view wanted) {
  const value* found = file.find(key);
  if (found == nullptr) return missing(file, key);
  const T* plain = std::get_if<T>(&found->data);
  if (plain == nullptr) return wrong_kind(file, key, wanted, *found);
  return *plain;
}

}  // namespace

result<std::string_view> gguf_file::get_string(std::string_view key) const {
  return exactly<std::string_view>(*this, key, "a string");
}

result<bool> gguf_file::get_bool(std::string_view key) const { return exactly<bool>(*this, key, "a boolean"); }

result<std::uint64_t> gguf_file::get_unsigned(std::string_view key) const {
  const value* found = find(key);
  if (found == nullptr) return missing(*this, key);
  if (const auto* plain = std::get_if<std::uint64_t>(&found->data)) return *plain;
  const auto* with_sign = std::get_if<std::int64_t>(&found->data);
  if (with_sign == nullptr) return wrong_kind(*this, key, "an integer", *found);
  if (*with_sign < 0) {
    return failure{errc::file_malformed, path_ + ": metadata '" + std::string(key) + "': expected 0 or more, found " +
                                             std::to_string(*with_sign)};
  }
  return static_cast<std::uint64_t>(*with_sign);
}

result<double> gguf_file::get_float(std::string_view key) const {
  const value* found = find(key);
  if (found == nullptr) return missing(*this, key);
  if (const auto* plain = std::get_if<double>(&found->data)) return *plain;
  if (const auto* whole = std::get_if<std::uint64_t>(&found->data)) return static_cast<double>(*whole);
  if (const auto* whole = std::get_if<std::int64_t>(&found->data)) return static_cast<double>(*whole);
  return wrong_kind(*this, key, "a number", *found);
}

result<std::uint64_t> gguf_file::get_unsigned(std::string_view key, std::uint64_t otherwise) const {
  return find(key) == nullptr ? result<std::uint64_t>(otherwise) : get_unsigned(key);
}

result<double> gguf_file::get_float(std::string_view key, double otherwise) const {
  return find(key) == nullptr ? result<double>(otherwise) : get_float(key);
}

result<bool> gguf_file::get_bool(std::string_view key, bool otherwise) const {
  return find(key) == nullptr ? result<bool>(otherwise) : get_bool(key);
}

result<const array*> gguf_file::get_array(std::string_view key) const {
  const value* found = find(key);
  if (found == nullptr) return missing(*this, key);
  const auto* elements = std::get_if<array>(&found->data);
  if (elements == nullptr) return wrong_kind(*this, key, "an array", *found);
  return elements;
}

result<void> gguf_file::check_unchanged() const {
  for (const auto& part : parts_) REDLINE_TRY(part->check_unchanged());
  if (mapping_ == nullptr) return {};
  return mapping_->check_unchanged();
}

void gguf_file::drop_from_memory(const tensor& t) const {
  for (const auto& part : parts_) {
    if (part->find_tensor(t.name) != nullptr) return part->drop_from_memory(t);
  }
  if (mapping_ != nullptr) mapping_->drop_from_memory(t.bytes);
}

}  // namespace redline::gguf
