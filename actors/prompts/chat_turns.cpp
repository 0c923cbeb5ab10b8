#include "actors/prompts/chat_turns.hpp"

#include <algorithm>
#include <optional>

namespace redline::actors {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t turns_max = 64;
constexpr std::size_t rendered_bytes_max = 4 << 20;  // each turn renders all before it: quadratic without a limit

bool is_user(const json& message) {
  const auto role = message.find("role");
  return role != message.end() && role->is_string() && role->get_ref<const std::string&>() == "user";
}

/// Empty for a message in parts.
std::string_view content_of(const json& message) {
  const auto content = message.find("content");
  if (content == message.end() || !content->is_string()) return {};
  return content->get_ref<const std::string&>();
}

/// Where the first user's message begins with its frame, if only the template's text precedes it. The frame is taken
/// from the second user's message. `second_at`: where that message begins; `text`: the whole text.
std::optional<std::size_t> frame_of_first(std::string_view text, std::size_t second_at, std::string_view first,
                                          std::string_view second) {
  if (first.empty() || second.empty()) return std::nullopt;
  const std::size_t content_at = text.find(second, second_at);
  if (content_at == std::string_view::npos) return std::nullopt;
  const std::string framed = std::string(text.substr(second_at, content_at - second_at)) + std::string(first);
  const std::size_t at = text.substr(0, second_at).find(framed);
  return at == std::string_view::npos ? std::nullopt : std::optional(at);
}

/// Token counts up to each cut, if the parts' tokens add up to the whole text's. `cuts`: where parts end, ascending.
std::optional<std::vector<std::uint32_t>> tokens_before(std::string_view text, std::span<const std::size_t> cuts,
                                                        std::span<const token> whole, const text::tokenizer& tokenizer,
                                                        std::string_view mark) {
  const text::encode_options how{.parse_special = true, .shield = mark};
  std::vector<std::uint32_t> counts;
  std::size_t taken = 0;
  std::size_t from = 0;
  for (const std::size_t cut : cuts) {
    const auto part = tokenizer.encode(text.substr(from, cut - from), how);
    if (part.size() > whole.size() - taken ||
        !std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(taken))) {
      return std::nullopt;
    }
    taken += part.size();
    from = cut;
    counts.push_back(static_cast<std::uint32_t>(taken));
  }
  const auto rest = tokenizer.encode(text.substr(from), how);
  const auto later = whole.subspan(taken);
  if (!std::equal(rest.begin(), rest.end(), later.begin(), later.end())) return std::nullopt;
  return counts;
}

}  // namespace

std::vector<token_range> older_turns(const json& messages, std::string_view text, std::span<const token> prompt,
                                     const text::tokenizer& tokenizer, const conversation_text& render,
                                     std::string_view mark) {
  std::vector<std::size_t> users;
  for (std::size_t i = 0; i < messages.size() && users.size() <= turns_max; ++i) {
    if (is_user(messages[i])) users.push_back(i);
  }
  if (users.size() < 2) return {};

  std::vector<std::size_t> cuts;
  json first = json::array();
  std::size_t rendered_bytes = 0;
  for (std::size_t u = users.front() == 0 ? 1 : 0; u < users.size(); ++u) {
    while (first.size() < users[u]) first.push_back(messages[first.size()]);
    const auto before = render(first);
    if (!before || !text.starts_with(*before) || (!cuts.empty() && before->size() <= cuts.back())) return {};
    rendered_bytes += before->size();
    if (rendered_bytes > rendered_bytes_max) break;
    cuts.push_back(before->size());
  }
  if (cuts.empty()) return {};
  if (users.front() == 0) {
    const auto at = frame_of_first(text, cuts.front(), content_of(messages[0]), content_of(messages[users[1]]));
    if (at) cuts.insert(cuts.begin(), *at);
  }
  const auto counts = tokens_before(text, cuts, prompt, tokenizer, mark);
  if (!counts) return {};
  std::vector<token_range> turns;
  for (std::size_t i = 1; i < counts->size(); ++i) turns.push_back({(*counts)[i - 1], (*counts)[i]});
  return turns;
}

}  // namespace redline::actors
