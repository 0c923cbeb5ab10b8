// Any bytes are refused or open as a GGUF file whose views can all be read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "runtime/gguf/gguf_file.hpp"
#include "tests/fuzz/driver.hpp"
#include "tests/support/tiny_model.hpp"

namespace {

/// Reads every byte of a view, so that the sanitizer notices one outside the file.
std::uint64_t touch(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (const std::byte byte : bytes) sum += std::to_integer<std::uint64_t>(byte);
  return sum;
}

std::uint64_t touch(std::string_view text) { return touch(std::as_bytes(std::span(text))); }

std::uint64_t touch(const redline::gguf::gguf_file& file) {
  std::uint64_t sum = 0;
  for (const auto& [key, value] : file.metadata()) {
    sum += touch(key);
    if (const auto* text = std::get_if<std::string_view>(&value.data)) sum += touch(*text);
    if (const auto* array = std::get_if<redline::gguf::array>(&value.data)) {
      for (const std::string_view text : array->strings) sum += touch(text);
    }
  }
  for (const auto& tensor : file.tensors()) {
    sum += touch(tensor.name) + touch(tensor.bytes) + tensor.element_count();
    if (file.find_tensor(tensor.name) != &tensor) std::abort();
  }
  return sum;
}

}  // namespace

std::vector<std::string> redline::fuzz::seeds() {
  const auto bytes = redline::test::make_tiny_model({.layers = 1}).writer().bytes();
  // The structure is at the start of the file; in the rest most mutations would only change weights.
  const std::string whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return {whole, whole.substr(0, 16384), whole.substr(0, 2048)};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = redline::gguf::gguf_file::from_bytes({bytes.begin(), bytes.end()}, "fuzz");
  if (!file) {
    if (!file.error().context.starts_with("fuzz: ")) std::abort();  // Every failure names the file.
    return 0;
  }
  volatile std::uint64_t used = touch(**file);
  static_cast<void>(used);
  // The header that a worker sends is also a file, and equals its own header.
  const std::string header = (*file)->copy_header();
  const auto sent = std::as_bytes(std::span(header));
  const auto received = redline::gguf::gguf_file::from_bytes({sent.begin(), sent.end()}, "header");
  if (!received || (*received)->metadata().size() != (*file)->metadata().size() || !(*received)->tensors().empty() ||
      (*received)->copy_header() != header) {
    std::abort();
  }
  return 0;
}
