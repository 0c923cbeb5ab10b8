#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/shapes/openai/response.hpp"

namespace redline::apply {

/// Writes answers that are never streamed: such requests refuse a stream or cannot ask for one.
class whole_answer_writer : public api::answer_writer {
 public:
  std::string first(std::uint32_t /*index*/, std::span<const token> /*prompt*/) final { return {}; }
  std::string delta(std::uint32_t /*index*/, std::string_view /*text*/,
                    const std::vector<api::token_report>* /*tokens*/, std::string_view /*reasoning*/) final {
    return {};
  }
  std::string finish(const api::choice& /*one*/) final { return {}; }
  std::string end(const api::usage_report& /*usage*/) final { return {}; }
  [[nodiscard]] std::string error(const api::api_error& why) const final { return api::error_event(why); }
};

}  // namespace redline::apply
