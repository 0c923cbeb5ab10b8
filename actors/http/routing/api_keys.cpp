#include "actors/http/routing/api_keys.hpp"

#include <sodium.h>

#include <algorithm>
#include <fstream>

namespace redline::actors {
namespace {

constexpr std::size_t keys_max = 10'000;
constexpr std::size_t key_bytes_min = 8, key_bytes_max = 512, name_bytes_max = 64;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= name_bytes_max && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
}

bool is_key(std::string_view text) {
  return text.size() >= key_bytes_min && text.size() <= key_bytes_max &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

failure bad_line(const std::string& where, const std::string& why) {
  return {errc::invalid_argument, "API keys, " + where + ": " + why};
}

}  // namespace

/// purpose: separates the hash that finds a key from the hash that names its tenant.
api_keys::hash api_keys::hash_of(std::string_view purpose, std::string_view text) {
  const auto bytes = [](std::string_view s) { return reinterpret_cast<const unsigned char*>(s.data()); };
  hash digest;
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  crypto_hash_sha256_update(&state, bytes(purpose), purpose.size());
  crypto_hash_sha256_update(&state, bytes(":"), 1);
  crypto_hash_sha256_update(&state, bytes(text), text.size());
  crypto_hash_sha256_final(&state, digest.data());
  return digest;
}

std::uint64_t to_prefix_scope(tenant_id tenant, std::string_view salt) {
  const std::string tenant_bytes = std::to_string(tenant.value) + ":";
  const auto bytes = [](std::string_view s) { return reinterpret_cast<const unsigned char*>(s.data()); };
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest;
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  for (const std::string_view part : {std::string_view("redline cache salt:"), std::string_view(tenant_bytes), salt}) {
    crypto_hash_sha256_update(&state, bytes(part), part.size());
  }
  crypto_hash_sha256_final(&state, digest.data());
  std::uint64_t scope = 0;
  for (std::size_t i = 0; i < sizeof scope; ++i) scope = scope << 8 | digest[i];
  return std::max<std::uint64_t>(scope, 1);
}

result<void> api_keys::add(std::string_view line, const std::string& where) {
  const auto colon = line.find(':');
  const bool has_name = colon != std::string_view::npos;
  const auto name = has_name ? trimmed(line.substr(0, colon)) : std::string_view();
  const auto key = has_name ? trimmed(line.substr(colon + 1)) : line;
  if (has_name && !is_name(name)) {
    return bad_line(where, "expected a name of up to " + std::to_string(name_bytes_max) +
                               " letters, digits, '.', '_' and '-' before the colon");
  }
  if (!is_key(key)) {
    return bad_line(where, "expected a key of " + std::to_string(key_bytes_min) + " to " +
                               std::to_string(key_bytes_max) + " printable characters without spaces, found " +
                               std::to_string(key.size()) + " bytes");
  }
  entry made;
  made.key_hash = hash_of("redline key", key);
  made.owner.name = name;
  const hash tenant = has_name ? hash_of("redline tenant name", name) : hash_of("redline tenant key", key);
  for (std::size_t i = 0; i < sizeof made.owner.tenant.value; ++i) {
    made.owner.tenant.value = made.owner.tenant.value << 8 | tenant[i];
  }
  const auto same = std::find_if(entries_.begin(), entries_.end(),
                                 [&made](const entry& other) { return other.key_hash == made.key_hash; });
  if (same != entries_.end()) {
    if (same->owner == made.owner) return {};
    return bad_line(where, "the key is already listed under another name");
  }
  if (entries_.size() >= keys_max)
    return bad_line(where, "expected at most " + std::to_string(keys_max) + " keys, found more");
  const bool is_known = std::any_of(entries_.begin(), entries_.end(),
                                    [&made](const entry& other) { return other.owner.tenant == made.owner.tenant; });
  if (!is_known) ++tenants_count_;
  entries_.push_back(std::move(made));
  return {};
}

result<api_keys> api_keys::load(std::span<const std::string> lines, const std::string& file) {
  if (sodium_init() < 0) return failure{errc::internal, "API keys: cannot initialize libsodium"};
  api_keys keys;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    REDLINE_TRY(keys.add(trimmed(lines[i]), "option " + std::to_string(i + 1)));
  }
  if (file.empty()) return keys;

  std::ifstream in(file, std::ios::binary);
  if (!in) return failure{errc::file_unreadable, "API keys: cannot open '" + file + "'"};
  std::string line;
  bool is_whitespace = true;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    const auto text = trimmed(line);
    if (text.empty() || text.starts_with('#')) continue;
    is_whitespace = false;
    auto added = keys.add(text, "'" + file + "' line " + std::to_string(number));
    sodium_memzero(line.data(), line.size());
    REDLINE_TRY(std::move(added));
  }
  if (in.bad()) return failure{errc::file_unreadable, "API keys: cannot read '" + file + "'"};
  if (is_whitespace) {
    return failure{errc::file_malformed,
                   "API keys: '" + file + "' contains no key; expected at least one line KEY or TENANT:KEY"};
  }
  return keys;
}

std::optional<key_owner> api_keys::find(std::string_view key) const {
  const hash wanted = hash_of("redline key", key);
  std::size_t found = entries_.size();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const bool same = sodium_memcmp(entries_[i].key_hash.data(), wanted.data(), wanted.size()) == 0;
    found = same ? i : found;
  }
  return found == entries_.size() ? std::nullopt : std::optional(entries_[found].owner);
}

std::optional<std::string_view> shown_key(
    const std::function<std::optional<std::string_view>(std::string_view name)>& header) {
  std::optional<std::string_view> key;
  if (const auto bearer = header("authorization")) key = bearer_key(*bearer);
  for (const auto* name : {"x-api-key", "api-key"}) {
    if (!key) key = header(name);
  }
  return key;
}

std::optional<std::string_view> bearer_key(std::string_view authorization) {
  constexpr std::string_view scheme = "bearer";
  const auto text = trimmed(authorization);
  if (text.size() <= scheme.size() || (text[scheme.size()] != ' ' && text[scheme.size()] != '\t')) return std::nullopt;
  for (std::size_t i = 0; i < scheme.size(); ++i) {
    if ((text[i] | 0x20) != scheme[i]) return std::nullopt;
  }
  const auto key = trimmed(text.substr(scheme.size()));
  return key.empty() ? std::nullopt : std::optional(key);
}

}  // namespace redline::actors
