#include "runtime/base/result.hpp"

#include <array>

namespace redline {
namespace {

struct entry {
  std::string_view name;
  std::string_view sentence;
};

constexpr auto entries = std::to_array<entry>({
#define REDLINE_ERRC_ENTRY(name, sentence) {#name, sentence},
    REDLINE_ERRC(REDLINE_ERRC_ENTRY)
#undef REDLINE_ERRC_ENTRY
});

}  // namespace

bool is_known(errc code) { return static_cast<std::size_t>(code) < entries.size(); }

std::string_view name_of(errc code) {
  return is_known(code) ? entries[static_cast<std::size_t>(code)].name : std::string_view("unknown");
}

std::string_view sentence_of(errc code) {
  return is_known(code) ? entries[static_cast<std::size_t>(code)].sentence : std::string_view("an unknown failure");
}

std::string failure::describe() const {
  if (context.empty()) return std::string(sentence_of(code));
  return context + " (" + std::string(sentence_of(code)) + ")";
}

}  // namespace redline
