#include "runtime/gguf/gguf_writer.hpp"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "runtime/base/replacement_file.hpp"

namespace redline::gguf {
namespace {

using buffer = std::vector<std::byte>;

template<class Number>
void append(buffer& out, Number number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_bytes(buffer& out, std::span<const std::byte> bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

void append_text(buffer& out, std::string_view text) {
  append<std::uint64_t>(out, text.size());
  append_bytes(out, std::as_bytes(std::span(text)));
}

std::uint64_t padding(std::uint64_t size, std::uint64_t alignment) {
  return (alignment - size % alignment) % alignment;
}

/// Appends one number of a metadata type, from the wide form that a reader returned.
template<class Wide>
void append_as(buffer& out, value_type type, Wide number) {
  switch (type) {
    case value_type::u8:
    case value_type::boolean:
      return append(out, static_cast<std::uint8_t>(number));
    case value_type::i8:
      return append(out, static_cast<std::int8_t>(number));
    case value_type::u16:
      return append(out, static_cast<std::uint16_t>(number));
    case value_type::i16:
      return append(out, static_cast<std::int16_t>(number));
    case value_type::u32:
      return append(out, static_cast<std::uint32_t>(number));
    case value_type::i32:
      return append(out, static_cast<std::int32_t>(number));
    case value_type::f32:
      return append(out, static_cast<float>(number));
    case value_type::u64:
      return append(out, static_cast<std::uint64_t>(number));
    case value_type::i64:
      return append(out, static_cast<std::int64_t>(number));
    case value_type::f64:
      return append(out, static_cast<double>(number));
    case value_type::string:
    case value_type::array:
      return;
  }
}

void append_array(buffer& out, const array& elements) {
  append(out, static_cast<std::uint32_t>(elements.element_type));
  append<std::uint64_t>(out, elements.size());
  for (const std::string_view text : elements.strings) append_text(out, text);
  // The reader returns doubles: the largest 64-bit numbers were rounded up to one that does not fit.
  const double end = elements.element_type == value_type::u64   ? 0x1p64
                     : elements.element_type == value_type::i64 ? 0x1p63
                                                                : std::numeric_limits<double>::infinity();
  for (const double number : elements.numbers) {
    append_as(out, elements.element_type, !(number >= end) || std::isinf(end) ? number : std::nextafter(end, 0.0));
  }
}

}  // namespace

void gguf_writer::start(std::string_view key, value_type type) {
  append_text(metadata_, key);
  append(metadata_, static_cast<std::uint32_t>(type));
  ++metadata_count_;
}

void gguf_writer::put_u32(std::string_view key, std::uint32_t number) {
  start(key, value_type::u32);
  append(metadata_, number);
}

void gguf_writer::put_u64(std::string_view key, std::uint64_t number) {
  start(key, value_type::u64);
  append(metadata_, number);
}

void gguf_writer::put_i32(std::string_view key, std::int32_t number) {
  start(key, value_type::i32);
  append(metadata_, number);
}

void gguf_writer::put_f32(std::string_view key, float number) {
  start(key, value_type::f32);
  append(metadata_, number);
}

void gguf_writer::put_bool(std::string_view key, bool flag) {
  start(key, value_type::boolean);
  append(metadata_, static_cast<std::uint8_t>(flag));
}

void gguf_writer::put_string(std::string_view key, std::string_view text) {
  start(key, value_type::string);
  append_text(metadata_, text);
}

void gguf_writer::put_strings(std::string_view key, std::span<const std::string> texts) {
  start(key, value_type::array);
  append(metadata_, static_cast<std::uint32_t>(value_type::string));
  append<std::uint64_t>(metadata_, texts.size());
  for (const std::string& text : texts) append_text(metadata_, text);
}

void gguf_writer::put_i32s(std::string_view key, std::span<const std::int32_t> numbers) {
  start(key, value_type::array);
  append(metadata_, static_cast<std::uint32_t>(value_type::i32));
  append<std::uint64_t>(metadata_, numbers.size());
  append_bytes(metadata_, std::as_bytes(numbers));
}

void gguf_writer::put_f32s(std::string_view key, std::span<const float> numbers) {
  start(key, value_type::array);
  append(metadata_, static_cast<std::uint32_t>(value_type::f32));
  append<std::uint64_t>(metadata_, numbers.size());
  append_bytes(metadata_, std::as_bytes(numbers));
}

void gguf_writer::put_value(std::string_view key, const value& any) {
  start(key, any.type);
  std::visit(
      [&](const auto& plain) {
        using kind = std::decay_t<decltype(plain)>;
        if constexpr (std::is_same_v<kind, std::string_view>)
          append_text(metadata_, plain);
        else if constexpr (std::is_same_v<kind, array>)
          append_array(metadata_, plain);
        else
          append_as(metadata_, any.type, plain);
      },
      any.data);
}

void gguf_writer::put_raw(std::string_view key, std::uint32_t type_number, std::span<const std::byte> payload) {
  start(key, static_cast<value_type>(type_number));
  append_bytes(metadata_, payload);
}

void gguf_writer::add_tensor(std::string_view name, tensor_type type, std::span<const std::uint64_t> dimensions,
                             std::span<const std::byte> payload) {
  tensors_.push_back({std::string(name),
                      static_cast<std::uint32_t>(type),
                      {dimensions.begin(), dimensions.end()},
                      {payload.begin(), payload.end()},
                      payload.size(),
                      {}});
}

void gguf_writer::add_tensor(std::string_view name, tensor_type type, std::span<const std::uint64_t> dimensions,
                             std::uint64_t payload_bytes, payload_source source) {
  tensors_.push_back({std::string(name),
                      static_cast<std::uint32_t>(type),
                      {dimensions.begin(), dimensions.end()},
                      {},
                      payload_bytes,
                      std::move(source)});
}

std::vector<std::byte> gguf_writer::header() const {
  buffer out;
  append_bytes(out, std::as_bytes(std::span("GGUF", 4)));
  append<std::uint32_t>(out, 3);
  append<std::uint64_t>(out, tensors_.size());
  append(out, metadata_count_);
  append_bytes(out, metadata_);
  std::uint64_t offset = 0;
  for (const entry& t : tensors_) {
    offset += padding(offset, alignment_);
    append_text(out, t.name);
    append(out, static_cast<std::uint32_t>(t.dimensions.size()));
    for (const std::uint64_t dimension : t.dimensions) append(out, dimension);
    append(out, t.type);
    append(out, offset);
    offset += t.payload_bytes;
  }
  if (!tensors_.empty()) out.resize(out.size() + padding(out.size(), alignment_));
  return out;
}

std::vector<std::byte> gguf_writer::bytes() const {
  buffer out = header();
  for (const entry& t : tensors_) {
    out.resize(out.size() + padding(out.size(), alignment_));
    append_bytes(out, t.payload);
  }
  return out;
}

result<void> gguf_writer::write(const std::string& path,
                                const std::function<void(std::uint64_t, std::uint64_t)>& progress) const {
  std::uint64_t all = 0;
  for (const entry& t : tensors_) all += t.payload_bytes;
  REDLINE_TRY_ASSIGN(replacement_file file, replacement_file::create(path));
  REDLINE_TRY(file.write(header()));
  std::uint64_t done = 0;
  const payload_sink put = [&](std::span<const std::byte> bytes) -> result<void> {
    REDLINE_TRY(file.write(bytes));
    done += bytes.size();
    if (progress) progress(done, all);
    return {};
  };
  for (const entry& t : tensors_) {
    REDLINE_TRY(file.write(buffer(padding(file.written_bytes(), alignment_))));
    const std::uint64_t before = done;
    REDLINE_TRY(t.source ? t.source(put) : put(t.payload));
    if (done - before != t.payload_bytes) {
      return failure{errc::internal, path + ": tensor '" + t.name + "': expected " + std::to_string(t.payload_bytes) +
                                         " bytes, but its source gave " + std::to_string(done - before)};
    }
  }
  return file.commit();
}

}  // namespace redline::gguf
