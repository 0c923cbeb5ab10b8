#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "actors/http/gateway.hpp"
#include "tests/support/hand_link.hpp"

namespace redline::actors {

inline constexpr auto gateway_where = actor::make_address(1, 1, 2);
inline constexpr auto http_where = actor::make_address(1, 2, 8);
inline constexpr auto manager_where = actor::make_address(2, 1, 4);
inline constexpr auto placer_where = actor::make_address(9, 1, 11);
inline constexpr microseconds calendar_cost{50'000};

/// Each look at the calendar advances the time, so that handlers take measurable time.
class slow_environment final : public environment {
 public:
  [[nodiscard]] instant now() const override { return inner_.now(); }
  [[nodiscard]] std::int64_t unix_seconds() const override {
    inner_.advance(calendar_cost);
    return inner_.unix_seconds();
  }
  std::uint64_t random() override { return inner_.random(); }
  void advance(microseconds by) { inner_.advance(by); }

 private:
  mutable test::virtual_environment inner_;
};

/// The gateway alone: the test writes its incoming messages by hand and reads its outgoing ones from the wire.
class gateway_alone : public testing::Test {
 protected:
  void SetUp() override;

  /// A digest of 1 is that of the initial model.
  std::shared_ptr<served_model> make_model(const std::string& name, std::shared_ptr<const text::tokenizer> by,
                                           std::uint64_t digest = 1);

  template<actor::message M>
  void tell(const M& m, actor::address from = http_where) {
    core.deliver(test::frame_of(gateway_where, from, m));
  }
  /// Runs all actors of the worker until they wait, and keeps their outgoing messages.
  void run();
  void pass(microseconds time);

  std::uint64_t ask(const std::string& method, const std::string& path, const nlohmann::json& body = {});
  std::uint64_t ask_for_text(bool stream = false);
  template<actor::message M>
  std::vector<M> all() const {
    std::vector<M> found;
    for (const auto& f : sent) {
      if (f.head.id == M::id) found.push_back(*actor::decode<M>(f.body));
    }
    return found;
  }
  std::optional<http_respond> answer_to(std::uint64_t id) const;
  std::uint32_t status_of(std::uint64_t id) const;
  std::uint32_t call(const std::string& method, const std::string& path);
  std::string metrics();
  /// Returns the value of a series.
  double metric(const std::string& series);
  /// Returns the session of the only answer in progress, whose sequence has the session's number.
  session_id session_in_progress() const;
  std::vector<session_id> all_sessions() const;
  actor::address address_of(session_id) const;

  slow_environment env;
  test::hand_link link;
  actor::worker core{1, 1, link, env};
  std::deque<actor::frame> sent;
  std::shared_ptr<const text::tokenizer> tokenizer;
  std::shared_ptr<gateway_services> services;
  bool is_in_pool = false;  // if true, sessions need a placement
  std::string key;          // that requests carry
  header_list more_headers;
  std::uint64_t exchange = 0;
  int became_ready = 0;
  int drained = 0;
  int jobs_done = 0;
};

/// The events of an exchange, one string for each.
std::vector<std::string> events_of(const std::vector<http_stream>& parts, std::uint64_t exchange);
std::string id_in(const std::string& event);

}  // namespace redline::actors
