#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/actor/protocol.hpp"

namespace redline::actors {

using header_list = std::vector<std::pair<std::string, std::string>>;

// The subject of each message about an exchange is the exchange's number, so an undeliverable message still ends it.

/// A request came in. The exchange stays open until it is answered, failed, or `http_closed` reports that it is over.
struct http_arrived {
  static constexpr actor::message_id id{0x0701};
  static constexpr std::string_view name = "http_arrived";

  std::uint64_t exchange = 0;
  std::string method;
  std::string path;
  header_list headers;
  std::string body;
  [[nodiscard]] std::uint64_t subject() const { return exchange; }
  static constexpr auto fields(auto& self) {
    return std::tie(self.exchange, self.method, self.path, self.headers, self.body);
  }
};

/// The exchange ended before its answer was complete: the client left, or waited too long.
struct http_closed {
  static constexpr actor::message_id id{0x0702};
  static constexpr std::string_view name = "http_closed";
  static constexpr bool control = true;

  std::uint64_t exchange = 0;
  [[nodiscard]] std::uint64_t subject() const { return exchange; }
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

/// A whole answer, or the beginning of one that takes several messages.
struct http_respond {
  static constexpr actor::message_id id{0x0711};
  static constexpr std::string_view name = "http_respond";

  std::uint64_t exchange = 0;
  std::uint32_t status = 200;
  header_list headers;
  std::string body;
  bool more = false;              // the body continues in http_body,
  std::uint64_t whole_bytes = 0;  // and has this many bytes in total
  [[nodiscard]] std::uint64_t subject() const { return exchange; }
  static constexpr auto fields(auto& self) {
    return std::tie(self.exchange, self.status, self.headers, self.body, self.more, self.whole_bytes);
  }
};

/// The next part of the body that http_respond began.
struct http_body {
  static constexpr actor::message_id id{0x0714};
  static constexpr std::string_view name = "http_body";

  std::uint64_t exchange = 0;
  std::string data;
  bool more = false;
  [[nodiscard]] std::uint64_t subject() const { return exchange; }
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.data, self.more); }
};

/// The beginning, a part, or the end of an event stream. An empty one with `end` closes it.
struct http_stream {
  static constexpr actor::message_id id{0x0712};
  static constexpr std::string_view name = "http_stream";

  std::uint64_t exchange = 0;
  bool begin = false;
  header_list headers;  // with begin
  std::string data;     // whole events
  bool end = false;
  [[nodiscard]] std::uint64_t subject() const { return exchange; }
  static constexpr auto fields(auto& self) {
    return std::tie(self.exchange, self.begin, self.headers, self.data, self.end);
  }
};

/// The answer is being computed, though none of it has been sent yet: its deadline starts again.
struct http_progress {
  static constexpr actor::message_id id{0x0715};
  static constexpr std::string_view name = "http_progress";

  std::uint64_t exchange = 0;
  [[nodiscard]] std::uint64_t subject() const { return exchange; }
  static constexpr auto fields(auto& self) { return std::tie(self.exchange); }
};

/// The same; in addition, the answer will be complete and successful, with these headers, unless an error ends it.
/// While it takes long, the client may be sent the headers and blank lines.
struct http_hold {
  static constexpr actor::message_id id{0x0718};
  static constexpr std::string_view name = "http_hold";

  std::uint64_t exchange = 0;
  header_list headers;
  [[nodiscard]] std::uint64_t subject() const { return exchange; }
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.headers); }
};

/// Ends an exchange in any state: as a complete answer, or as the last event of its stream.
struct http_fail {
  static constexpr actor::message_id id{0x0716};
  static constexpr std::string_view name = "http_fail";
  static constexpr bool control = true;

  std::uint64_t exchange = 0;
  std::uint32_t status = 500;
  std::string error;  // JSON
  [[nodiscard]] std::uint64_t subject() const { return exchange; }
  static constexpr auto fields(auto& self) { return std::tie(self.exchange, self.status, self.error); }
};

/// The gateway has started and knows of no exchange: those that exist end.
struct http_forget {
  static constexpr actor::message_id id{0x0717};
  static constexpr std::string_view name = "http_forget";
  static constexpr bool control = true;
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// The server is about to stop: each connection ends with its current or next exchange.
struct http_drain {
  static constexpr actor::message_id id{0x0713};
  static constexpr std::string_view name = "http_drain";
  static constexpr bool control = true;
  static constexpr auto fields(auto&) { return std::tie(); }
};

}  // namespace redline::actors
