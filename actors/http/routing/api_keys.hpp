#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"

namespace redline::actors {

/// Who a key belongs to. Several keys with one name are one tenant; a key without a name is a tenant of its own, and
/// has the same id in every process and after every restart.
struct key_owner {
  tenant_id tenant;
  std::string name;  // empty for a key without one
  bool operator==(const key_owner&) const = default;
};

/// The keys a server accepts. Only their SHA-256 hashes are kept. Immutable once built; see key_ring.
class api_keys {
 public:
  /// Lines are `key` or `name:key`; a name has letters, digits, `.`, `_` and `-`. Blank lines and `#` comments in the
  /// file are skipped; a file of nothing else is refused, because who names a file wants keys. A key has 8 to 512
  /// printable characters without blanks. file empty: there is none.
  static result<api_keys> load(std::span<const std::string> lines, const std::string& file = {});

  /// No key is configured, so the address must be local or the operator must have said --insecure.
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::size_t tenants_count() const { return tenants_count_; }

  /// Takes the same time whichever key matches, or none.
  [[nodiscard]] std::optional<key_owner> find(std::string_view key) const;

 private:
  using hash = std::array<unsigned char, 32>;
  struct entry {
    hash key_hash{};
    key_owner owner;
  };

  static hash hash_of(std::string_view purpose, std::string_view text);
  /// where: for the error text, which never holds the key.
  result<void> add(std::string_view line, const std::string& where);

  std::vector<entry> entries_;
  std::size_t tenants_count_ = 0;
};

/// A number for the requests of a tenant with one cache_salt: those share KV with each other and with nobody else.
/// Never 0; as hard to hit on purpose as SHA-256 lets 64 bits be.
std::uint64_t to_prefix_scope(tenant_id tenant, std::string_view salt);

/// The key that a request shows, as a bearer token or in x-api-key or api-key. header(name): its value, if any.
std::optional<std::string_view> shown_key(
    const std::function<std::optional<std::string_view>(std::string_view name)>& header);

/// The key in an Authorization header's "Bearer <key>"; nullopt for another scheme.
std::optional<std::string_view> bearer_key(std::string_view authorization);

}  // namespace redline::actors
