#include "runtime/gguf/gguf_writer.hpp"

#include <cstring>
#include <fstream>

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

void pad(buffer& out, std::uint64_t alignment) { out.resize((out.size() + alignment - 1) / alignment * alignment); }

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

void gguf_writer::put_raw(std::string_view key, std::uint32_t type_number, std::span<const std::byte> payload) {
  start(key, static_cast<value_type>(type_number));
  append_bytes(metadata_, payload);
}

void gguf_writer::add_tensor(std::string_view name, tensor_type type, std::span<const std::uint64_t> dimensions,
                             std::span<const std::byte> payload) {
  tensors_.push_back({std::string(name),
                      static_cast<std::uint32_t>(type),
                      {dimensions.begin(), dimensions.end()},
                      {payload.begin(), payload.end()}});
}

std::vector<std::byte> gguf_writer::bytes() const {
  buffer out;
  append_bytes(out, std::as_bytes(std::span("GGUF", 4)));
  append<std::uint32_t>(out, 3);
  append<std::uint64_t>(out, tensors_.size());
  append(out, metadata_count_);
  append_bytes(out, metadata_);
  buffer data;
  for (const entry& t : tensors_) {
    pad(data, alignment_);
    append_text(out, t.name);
    append(out, static_cast<std::uint32_t>(t.dimensions.size()));
    for (const std::uint64_t dimension : t.dimensions) append(out, dimension);
    append(out, t.type);
    append<std::uint64_t>(out, data.size());
    append_bytes(data, t.payload);
  }
  if (!tensors_.empty()) {
    pad(out, alignment_);
    append_bytes(out, data);
  }
  return out;
}

result<void> gguf_writer::write(const std::string& path) const {
  const buffer all = bytes();
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size()));
  out.close();
  if (!out) return failure{errc::io_error, path + ": cannot be written"};
  return {};
}

}  // namespace redline::gguf
