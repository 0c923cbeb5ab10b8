// Any bytes are refused or open as a safetensors_file whose tensors can all be read.
#include <cstdlib>

#include "runtime/huggingface/safetensors.hpp"
#include "tests/fuzz/driver.hpp"
#include "tests/support/hf_model.hpp"

using namespace redline;

std::vector<std::string> fuzz::seeds() {
  const std::string tensors =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]},)"
      R"("b":{"dtype":"I64","shape":[],"data_offsets":[4,12]}})";
  return {test::safetensors_bytes(tensors, "abcdefghijkl"), test::safetensors_bytes("{}", ""),
          test::safetensors_bytes(test::make_hf_model({.layers = 1}).tensors).substr(0, 4096)};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = huggingface::safetensors_file::from_bytes(bytes, "fuzz");
  if (!file) {
    if (!file.error().context.starts_with("fuzz: ")) std::abort();  // Every failure names the file.
    return 0;
  }
  std::size_t covered = 0;
  volatile std::uint64_t sum = 0;
  for (const auto& [name, tensor] : (*file)->tensors()) {
    for (const std::byte byte : tensor.bytes) sum = sum + std::to_integer<std::uint64_t>(byte);
    covered += tensor.bytes.size();
  }
  if (covered > size) std::abort();  // No byte belongs to two tensors.
  return 0;
}
