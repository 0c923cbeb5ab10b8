#include "actors/cli/lsp/message_frames.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace redline::actors::cli::lsp {
namespace {

constexpr std::size_t shown_bytes_max = 60;
// A length is only announced, so memory grows as the bytes arrive.
constexpr std::uint64_t reserved_bytes_max = 1 << 20;
constexpr std::uint64_t length_max = std::uint64_t{1} << 53;

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string shown(std::string_view text) {
  std::string out(text.substr(0, shown_bytes_max));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return "'" + out + "'" + (text.size() > shown_bytes_max ? "..." : "");
}

/// Empty if a body of this type can be read.
std::string charset_complaint(std::string_view type) {
  const std::string low = lowered(type);
  const auto at = low.find("charset=");
  if (at == std::string::npos) return {};
  std::string name = low.substr(at + 8);
  name.resize(std::min(name.size(), name.find(';')));
  std::erase(name, '"');
  const std::string_view bare = trimmed(name);
  if (bare == "utf-8" || bare == "utf8") return {};
  return "expected a body in UTF-8, found Content-Type " + shown(type);
}

}  // namespace

std::string frame_of(std::string_view body) {
  return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

std::optional<std::string> frame_reader::take_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) return begin_body();
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) {
    return "expected a header line such as 'Content-Length: 120', found " + shown(line);
  }
  const std::string name = lowered(trimmed(line.substr(0, colon)));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (name == "content-type") why_refused_ = charset_complaint(value);
  if (name != "content-length") return std::nullopt;
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
  if (value.empty() || error != std::errc() || end != value.data() + value.size() || n > length_max) {
    return "Content-Length: expected a number of bytes, found " + shown(value);
  }
  if (length_ && *length_ != n) return "Content-Length: expected one value, found two different ones";
  length_ = n;
  return std::nullopt;
}

std::optional<std::string> frame_reader::begin_body() {
  header_bytes_ = 0;
  if (!length_) return "expected a Content-Length among a message's header lines, found none";
  left_ = *std::exchange(length_, std::nullopt);
  in_body_ = true;
  body_.clear();
  if (left_ > bytes_max_) {
    why_refused_ = "expected a message of at most " + std::to_string(bytes_max_) + " bytes, found one of " +
                   std::to_string(left_) + "; the message was ignored";
  }
  if (why_refused_.empty()) body_.reserve(std::min(left_, reserved_bytes_max));
  return std::nullopt;
}

std::vector<frame> frame_reader::feed(std::string_view bytes) {
  std::vector<frame> out;
  const auto give_up = [&](std::string why) {
    broken_ = true;
    out.push_back({frame::kind::broken, std::move(why)});
  };
  while (!broken_ && (!bytes.empty() || (in_body_ && left_ == 0))) {
    if (in_body_) {
      const auto part = bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size())));
      if (why_refused_.empty()) body_.append(part);
      left_ -= part.size();
      bytes.remove_prefix(part.size());
      if (left_ > 0) continue;
      in_body_ = false;
      if (why_refused_.empty())
        out.push_back({frame::kind::message, std::exchange(body_, {})});
      else
        out.push_back({frame::kind::refused, std::exchange(why_refused_, {})});
      continue;
    }
    const char c = bytes.front();
    bytes.remove_prefix(1);
    if (++header_bytes_ > header_bytes_max) {
      give_up("expected at most " + std::to_string(header_bytes_max) + " bytes of header lines, found more");
    } else if (c != '\n') {
      line_.push_back(c);
    } else if (auto why = take_line(std::exchange(line_, {}))) {
      give_up(std::move(*why));
    }
  }
  return out;
}

}  // namespace redline::actors::cli::lsp
