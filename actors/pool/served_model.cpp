#include "actors/pool/served_model.hpp"

#include "runtime/base/hash.hpp"
#include "runtime/base/hex.hpp"
#include "runtime/base/version.hpp"

namespace redline::actors {

std::string make_fingerprint(std::uint64_t model, numerics_id numerics) {
  const std::uint64_t both = fnv1a().add(to_hex(model)).add(std::to_string(numerics.value)).value();
  return "redline-" + version() + "-" + to_hex(both);
}

}  // namespace redline::actors
