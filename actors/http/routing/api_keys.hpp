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

/// The owner of a key. Several keys with one name are one tenant. A key without a name is a tenant of its own, with the
/// same id in every process and after every restart.
struct key_owner {
  tenant_id tenant;
  std::string name;  // empty for a key without a name
  bool operator==(const key_owner&) const = default;
};

/// The keys that a server accepts, stored only as SHA-256 hashes. Immutable once built; see key_ring.
class api_keys {
 public:
  /// Lines are `key` or `name:key`; a name has letters, digits, `.`, `_` and `-`. Blank lines and `#` comments in the
  /// file are skipped. A file without keys is refused, because an operator who names a file wants keys. A key has 8 to
  /// 512 printable characters without whitespace. file: empty if there is none.
  static result<api_keys> load(std::span<const std::string> lines, const std::string& file = {});

  /// If true, the address must be local, or the operator must have passed --insecure.
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::size_t tenants_count() const { return tenants_count_; }

  /// Takes the same time for every key, whether it matches or not.
  [[nodiscard]] std::optional<key_owner> find(std::string_view key) const;

 private:
  using hash = std::array<unsigned char, 32>;
  struct entry {
    hash key_hash{};
    key_owner owner;
  };

  static hash hash_of(std::string_view purpose, std::string_view text);
  /// where: for the error text, which never contains the key.
  result<void> add(std::string_view line, const std::string& where);

  std::vector<entry> entries_;
  std::size_t tenants_count_ = 0;
};

/// Identifies the requests of a tenant with one cache_salt, which share KV only with each other. Never 0. Collisions
/// are as hard to construct as 64 bits of SHA-256 allow.
std::uint64_t to_prefix_scope(tenant_id tenant, std::string_view salt);

/// The key of a request, from a bearer token, x-api-key or api-key. header(name): its value, if any.
std::optional<std::string_view> shown_key(
    const std::function<std::optional<std::string_view>(std::string_view name)>& header);

/// The key in an Authorization header's "Bearer <key>"; nullopt for another scheme.
std::optional<std::string_view> bearer_key(std::string_view authorization);

}  // namespace redline::actors
