#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "runtime/actor/codec.hpp"

namespace redline::actor {

/// Number of a message type on the wire: the high byte is its family, the low byte the message. Never reused.
using message_id = strong_id<struct message_id_tag, std::uint16_t>;

/// A struct that can be sent: it has a number, a name and fields.
template<class M>
concept message = has_fields<M> && std::default_initializable<M> && requires {
  { M::id } -> std::convertible_to<message_id>;
  { M::name } -> std::convertible_to<std::string_view>;
};

/// Control messages are read before data: stop, cancel and failure messages must overtake work.
template<class M>
inline constexpr bool is_control = requires {
  M::control;
};

/// The number that identifies the subject of a message for its sender, such as an exchange; 0 if there is none. A
/// message provides it by a member `subject()`.
template<class M>
constexpr std::uint64_t read_subject(const M& m) {
  if constexpr (requires { m.subject(); }) {
    return m.subject();
  } else {
    return 0;
  }
}

/// The messages that an actor accepts.
template<message... Ms>
struct protocol {
  using any = std::variant<Ms...>;
  static constexpr std::size_t size = sizeof...(Ms);
  template<class M>
  static constexpr bool accepts = (std::same_as<M, Ms> || ...);
};

namespace detail {
template<class... Ms>
constexpr bool ids_are_distinct(std::type_identity<protocol<Ms...>>) {
  constexpr std::uint16_t ids[] = {Ms::id.value...};
  for (std::size_t i = 0; i < sizeof...(Ms); ++i) {
    for (std::size_t j = i + 1; j < sizeof...(Ms); ++j) {
      if (ids[i] == ids[j]) return false;
    }
  }
  return true;
}

template<class A, class M>
concept handles = requires(A& a, M m) {
  { a.on(std::move(m)) } -> std::same_as<void>;
};

template<class A, class... Ms>
constexpr bool handles_all(std::type_identity<protocol<Ms...>>) {
  return (handles<A, Ms> && ...);
}
}  // namespace detail

/// Requires one handler for every message the actor accepts, and distinct message numbers. A handler takes const M&, or
/// M&& to keep the contents of a large message.
template<class A>
concept well_formed_actor = detail::ids_are_distinct(
    std::type_identity<typename A::accepts>{}) && detail::handles_all<A>(std::type_identity<typename A::accepts>{});

}  // namespace redline::actor
