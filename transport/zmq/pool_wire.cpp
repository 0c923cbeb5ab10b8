#include "transport/zmq/pool_wire.hpp"

#include "runtime/actor/codec.hpp"
#include "runtime/actor/system_messages.hpp"

namespace redline::transport {

// ROUTER identities may not start with a zero byte.
std::string to_identity(const process_start& who) {
  std::string id = {'P'};
  for (int shift = 16; shift >= 0; shift -= 8) id += static_cast<char>((who.process >> shift) & 0xff);
  for (int shift = 56; shift >= 0; shift -= 8) id += static_cast<char>((who.start_id >> shift) & 0xff);
  return id;
}

std::optional<process_start> parse_identity(std::string_view identity) {
  if (identity.size() != 12 || identity[0] != 'P') return std::nullopt;
  process_start who;
  for (std::size_t i = 1; i < 4; ++i) who.process = (who.process << 8) | static_cast<unsigned char>(identity[i]);
  for (std::size_t i = 4; i < 12; ++i) who.start_id = (who.start_id << 8) | static_cast<unsigned char>(identity[i]);
  return who;
}

std::optional<actor::frame> undeliverable_news(const actor::envelope& head, failure why) {
  if (head.from.value == 0 || head.id == actor::undeliverable::id) return std::nullopt;
  const actor::undeliverable news{head.to, head.id, std::move(why), head.subject};
  return actor::frame{actor::envelope{.to = head.from, .id = actor::undeliverable::id}, actor::encode(news)};
}

}  // namespace redline::transport
