#include "runtime/gguf/file_digest.hpp"

#include <algorithm>
#include <bit>

#include "runtime/base/hash.hpp"

namespace redline::gguf {
namespace {

constexpr std::size_t samples_count = 4;
constexpr std::size_t sample_bytes = 64;

void add_number(fnv1a& to, std::uint64_t n) {
  for (int shift = 0; shift < 64; shift += 8) to.add(static_cast<std::uint8_t>(n >> shift));
}
void add_text(fnv1a& to, std::string_view text) {
  add_number(to, text.size());
  to.add(text);
}
void add_value(fnv1a& to, std::uint64_t v) { add_number(to, v); }
void add_value(fnv1a& to, std::int64_t v) { add_number(to, static_cast<std::uint64_t>(v)); }
void add_value(fnv1a& to, double v) { add_number(to, std::bit_cast<std::uint64_t>(v)); }
void add_value(fnv1a& to, bool v) { add_number(to, v ? 1 : 0); }
void add_value(fnv1a& to, std::string_view v) { add_text(to, v); }
void add_value(fnv1a& to, const array& v) {
  add_number(to, static_cast<std::uint64_t>(v.element_type));
  add_number(to, v.size());
  for (const auto text : v.strings) add_text(to, text);
  for (const double n : v.numbers) add_value(to, n);
}

}  // namespace

std::uint64_t compute_file_digest(const gguf_file& file) {
  fnv1a digest;
  add_number(digest, file.size_bytes());
  for (const auto& [key, v] : file.metadata()) {
    add_text(digest, key);
    add_number(digest, static_cast<std::uint64_t>(v.type));
    std::visit([&](const auto& data) { add_value(digest, data); }, v.data);
  }
  for (const tensor& t : file.tensors()) {
    add_text(digest, t.name);
    add_number(digest, static_cast<std::uint64_t>(t.type));
    for (const auto d : t.dimensions) add_number(digest, d);
    const auto bytes = std::string_view(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
    add_number(digest, bytes.size());
    const std::size_t last = bytes.size() - std::min(bytes.size(), sample_bytes);
    for (std::size_t i = 0; i < samples_count; ++i) {
      digest.add(bytes.substr(last * i / (samples_count - 1), sample_bytes));
    }
  }
  return digest.value();
}

std::uint64_t compute_header_digest(std::string_view header) { return fnv1a().add(header).value(); }

}  // namespace redline::gguf
