#include "runtime/actor/undelivered.hpp"

#include <atomic>

namespace redline::actor {
namespace {

std::atomic<std::uint64_t> unreachable{0}, mailbox_full{0}, malformed{0}, unknown{0};

}  // namespace

void count_undelivered(errc why) {
  switch (why) {
    case errc::unreachable:
      ++unreachable;
      return;
    case errc::mailbox_full:
      ++mailbox_full;
      return;
    case errc::unknown_message:
      ++unknown;
      return;
    default:
      ++malformed;
  }
}

undelivered_counts read_undelivered_counts() {
  return {.unreachable = unreachable, .mailbox_full = mailbox_full, .malformed = malformed, .unknown = unknown};
}

}  // namespace redline::actor
