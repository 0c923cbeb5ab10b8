// Any bytes become tokens and the same bytes again; any token ids become text or are refused.
#include <cstdlib>
#include <cstring>

#include "runtime/text/tokenizer.hpp"
#include "tests/fuzz/driver.hpp"
#include "tests/support/tiny_model.hpp"

using namespace redline;

std::vector<std::string> fuzz::seeds() {
  return {"def f(x):\n\treturn x  # 12345\r\n", "naïve 文字 🙂 e\u0301",
          "<|im_start|>user\n<|im_end|>",       "\xff\xfe\x80 \xc3",
          std::string("\0\0\x01", 3),           "   leading and trailing   ",
          "don't we'LL I'M 3.14 __init__"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto file = test::make_tiny_model().file();
  static const auto tokenizer = *text::tokenizer::from_file(*file);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto ids = tokenizer->encode(bytes, {});
  const auto back = tokenizer->decode(ids, {});
  if (!back || *back != bytes) std::abort();
  std::vector<token> any(size / sizeof(token));
  if (!any.empty()) std::memcpy(any.data(), data, any.size() * sizeof(token));
  (void)tokenizer->decode(any, {});
  return 0;
}
