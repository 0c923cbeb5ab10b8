#pragma once

#include <brotli/encode.h>
#include <zlib.h>

#include <string>
#include <string_view>

namespace redline::test {

/// A gzip file with these contents.
inline std::string make_gzip(std::string_view contents) {
  z_stream stream{};
  constexpr int gzip_window = 15 + 16, memory_level = 8;
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, gzip_window, memory_level, Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  std::string file(deflateBound(&stream, contents.size()), '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(contents.data()));
  stream.avail_in = static_cast<uInt>(contents.size());
  stream.next_out = reinterpret_cast<Bytef*>(file.data());
  stream.avail_out = static_cast<uInt>(file.size());
  deflate(&stream, Z_FINISH);
  file.resize(stream.total_out);
  deflateEnd(&stream);
  return file;
}

/// A Brotli stream with these contents.
inline std::string make_brotli(std::string_view contents) {
  std::size_t size = BrotliEncoderMaxCompressedSize(contents.size());
  std::string stream(size, '\0');
  BrotliEncoderCompress(5, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_TEXT, contents.size(),
                        reinterpret_cast<const std::uint8_t*>(contents.data()), &size,
                        reinterpret_cast<std::uint8_t*>(stream.data()));
  stream.resize(size);
  return stream;
}

}  // namespace redline::test
