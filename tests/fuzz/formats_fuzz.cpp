// Any prompt is recognized or not within bytes that are counted; what is expected of it is at most as long as the prompt
// and has the same bytes again. Any update is put into any file, and only with lines of the two.
#include <algorithm>
#include <cstdlib>

#include "runtime/formats/elision.hpp"
#include "runtime/formats/recognise.hpp"
#include "tests/fuzz/driver.hpp"
#include "tests/runtime/formats/golden_prompts.hpp"

using namespace redline;

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> found;
  for (const auto& one : formats::golden_prompts()) found.push_back(one.prompt);
  found.push_back("a = 1\nb = 2\nc = 3\nd = 4\n=======\na = 1\n# ... existing code ...\nd = 5\n");
  return found;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::uint64_t bytes_read = 0;
  const auto found = formats::recognise(bytes, &bytes_read);
  if (bytes_read > 16 * size + 40'000) std::abort();
  if (found) {
    const auto again = formats::recognise(bytes);
    if (found->format.empty() || found->text.empty() || found->text.size() > 2 * size + 100) std::abort();
    if (!again || again->format != found->format || again->text != found->text) std::abort();
  }
  const std::size_t cut = std::min(bytes.find("=======\n"), size / 2);
  const std::string_view file = bytes.substr(0, cut), update = bytes.substr(cut);
  std::uint64_t lines_read = 0;
  if (formats::expected_file(file, update, &lines_read).size() > file.size() + update.size() * 2 + 2) std::abort();
  if (lines_read > 200 * (size + 1)) std::abort();
  return 0;
}
