#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/actor/protocol.hpp"

namespace redline::actors {

using header_list = std::vector<std::pair<std::string, std::string>>;

/// A request came in. The exchange stays open until it is answered, aborted, or `http_closed` says that the client
/// left.
struct http_arrived {
  static constexpr actor::message_id id{0x0701};
  static constexpr std::string_view name = "http_arrived";

  std::uint64_t exchange = 0;
  std::string method;
  std::string path;
  header_list headers;
  std::string body;
  static constexpr auto fields(auto& self) {
    return std::tie(self.exchange, self.method, self.path, self.headers, self.body);
  }
};

/// The client left before its answer was complete.
struct http_closed {
  static constexpr actor::message_id id{0x0702};
  static constexpr std::string_view name = "http_closed";
  static constexpr bool control = true;

  std::uint64_t exchange = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange); }
};

/// The client reads more slowly than it is written to, or has caught up.
struct http_flow {
  static constexpr actor::message_id id{0x0703};
  static constexpr std::string_view name = "http_flow";
  static constexpr bool control = true;

  std::uint64_t exchange = 0;
  bool paused = false;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.paused); }
};

/// A whole answer.
struct http_respond {
  static constexpr actor::message_id id{0x0711};
  static constexpr std::string_view name = "http_respond";

  std::uint64_t exchange = 0;
  std::uint32_t status = 200;
  header_list headers;
  std::string body;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.status, self.headers, self.body); }
};

/// The beginning, a part, or the end of an event stream; an empty one with `end` closes it.
struct http_stream {
  static constexpr actor::message_id id{0x0712};
  static constexpr std::string_view name = "http_stream";

  std::uint64_t exchange = 0;
  bool begin = false;
  header_list headers;  // with begin
  std::string data;     // whole events
  bool end = false;
  static constexpr auto fields(auto& self) {
    return std::tie(self.exchange, self.begin, self.headers, self.data, self.end);
  }
};

/// No new connections; those there are end with their current exchange.
struct http_stop_accepting {
  static constexpr actor::message_id id{0x0713};
  static constexpr std::string_view name = "http_stop_accepting";
  static constexpr bool control = true;
  static constexpr auto fields(auto&) { return std::tie(); }
};

}  // namespace redline::actors
