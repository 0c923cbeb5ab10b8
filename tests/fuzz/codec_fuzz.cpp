// Any bytes are refused or decode to a message, for every kind of message; encoding it again is a fixed point.
#include "actors/messages/all_messages.hpp"
#include "runtime/actor/codec.hpp"
#include "runtime/actor/frame.hpp"
#include "tests/fuzz/driver.hpp"
#include "tests/support/message_sample.hpp"

using namespace redline;

namespace {

template<class M>
void decode_as(std::string_view bytes) {
  const auto m = actor::decode<M>(bytes);
  if (!m) {
    if (m.error().code != errc::malformed_message) std::abort();
    return;
  }
  const std::string once = actor::encode(*m);
  const auto again = actor::decode<M>(once);
  if (!again || actor::encode(*again) != once) std::abort();
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> all{actor::encode(test::sample_of<actor::envelope>(1))};
  actors::for_each_message(
      [&]<class M>(std::type_identity<M>) { all.push_back(actor::encode(test::sample_of<M>(7))); });
  return all;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  decode_as<actor::envelope>(bytes);
  actors::for_each_message([&]<class M>(std::type_identity<M>) { decode_as<M>(bytes); });
  return 0;
}
