#include "transport/brotli.hpp"

#include <brotli/decode.h>

#include <algorithm>
#include <memory>

namespace redline::transport {

result<std::string> read_brotli(std::string_view stream, std::size_t bytes_max) {
  constexpr std::size_t piece = std::size_t{64} << 10;
  const std::unique_ptr<BrotliDecoderState, void (*)(BrotliDecoderState*)> decoder(
      BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), &BrotliDecoderDestroyInstance);
  if (!decoder) return failure{errc::internal, "cannot initialize brotli"};
  std::string contents;
  const auto* in = reinterpret_cast<const std::uint8_t*>(stream.data());
  std::size_t left = stream.size(), written = 0;
  auto outcome = BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
  while (outcome == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT) {
    if (written > bytes_max) {
      return failure{errc::unsupported_format, "it has more than " + std::to_string(bytes_max) + " bytes when unpacked"};
    }
    contents.resize(std::min(std::max(2 * written, piece), bytes_max + 1));
    auto* out = reinterpret_cast<std::uint8_t*>(contents.data()) + written;
    std::size_t room = contents.size() - written;
    outcome = BrotliDecoderDecompressStream(decoder.get(), &left, &in, &room, &out, nullptr);
    written = contents.size() - room;
  }
  if (written > bytes_max) {
    return failure{errc::unsupported_format, "it has more than " + std::to_string(bytes_max) + " bytes when unpacked"};
  }
  if (outcome != BROTLI_DECODER_RESULT_SUCCESS || left != 0) {
    return failure{errc::malformed_message, outcome == BROTLI_DECODER_RESULT_SUCCESS
                                                ? "not valid brotli: expected its end, found more after it"
                                            : outcome == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT
                                                ? "not valid brotli: it ends too early"
                                                : "not valid brotli"};
  }
  contents.resize(written);
  return contents;
}

}  // namespace redline::transport
