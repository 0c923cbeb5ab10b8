#include "transport/gzip.hpp"

#include <zlib.h>

#include <memory>

namespace redline::transport {
namespace {

constexpr std::size_t shortest_file = 18;  // header and trailer
constexpr int window_of_gzip = 15 + 16;    // zlib's code for the largest window and only the gzip format

failure malformed(const std::string& why) { return {errc::malformed_message, "not valid gzip: " + why}; }

}  // namespace

std::optional<std::uint32_t> read_gzip_size(std::string_view file) {
  if (file.size() < shortest_file || !file.starts_with("\x1f\x8b")) return std::nullopt;
  std::uint32_t size = 0;  // the last four bytes, the lowest first
  for (std::size_t i = 1; i <= 4; ++i) size = size << 8 | static_cast<unsigned char>(file[file.size() - i]);
  return size;
}

result<std::string> gunzip(std::string_view file) {
  const auto size = read_gzip_size(file);
  if (!size) return malformed("expected the header and trailer of a gzip file, found other bytes");
  std::string contents(*size, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, window_of_gzip) != Z_OK) return failure{errc::internal, "cannot initialize zlib"};
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, &inflateEnd);
  // zlib does not write to its input, although the type allows it.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(file.data()));
  stream.avail_in = static_cast<uInt>(file.size());
  Bytef spare = 0;  // inflate wants output space even for empty contents
  stream.next_out = contents.empty() ? &spare : reinterpret_cast<Bytef*>(contents.data());
  stream.avail_out = static_cast<uInt>(contents.empty() ? 1 : contents.size());
  const int outcome = inflate(&stream, Z_FINISH);
  if (outcome != Z_STREAM_END || stream.total_out != *size) {
    return malformed(stream.msg != nullptr ? stream.msg
                                           : "it ends too early, or has more data than its size field says");
  }
  if (stream.avail_in != 0) return malformed("expected one member, found more after it");
  return contents;
}

}  // namespace redline::transport
