#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace redline::draft {

/// How a request's drafts are made.
enum class method : std::uint8_t {
  regular,     // no draft: one token per target pass
  lookup,      // prompt lookup
  assisted,    // the draft model, one token after another
  blazedit,    // prompt lookup inside the draft model
  prediction,  // the client's prediction at a cursor in it, or lookup if that finds more
  automatic,   // the one of prediction, lookup, mtp and blazedit that pays in this session
  mtp,         // the target model's MTP layer
  last_,
};

/// The name in requests and flags.
[[nodiscard]] constexpr std::string_view name_of(method how) {
  switch (how) {
    case method::regular:
      return "regular";
    case method::lookup:
      return "lookup";
    case method::assisted:
      return "assisted";
    case method::blazedit:
      return "blazedit";
    case method::prediction:
      return "prediction";
    case method::automatic:
      return "auto";
    case method::mtp:
      return "mtp";
    case method::last_:
      break;
  }
  return "?";
}

/// Parameters of all methods, with their sources' values as defaults.
struct draft_options {
  method how = method::regular;
  std::uint32_t max_matching_ngram_size = 10;  // lookup, blazedit: longest n-gram looked up
  std::uint32_t lookup_tokens_max = 80;        // lookup, prediction: tokens per draft
  std::uint32_t assisted_tokens_max = 20;      // assisted: tokens per draft
  float confidence_min = 0.4F;                 // assisted: stop below this probability of the draft's own token
  std::uint32_t micro_draft_tokens = 80;       // blazedit: tokens looked up per pass of the draft model
  std::uint32_t max_num_run = 4;               // blazedit: passes of the draft model per draft

  bool operator==(const draft_options&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.how, self.max_matching_ngram_size, self.lookup_tokens_max, self.assisted_tokens_max,
                    self.confidence_min, self.micro_draft_tokens, self.max_num_run);
  }
};

/// Whether these drafts can come from a client's prediction.
[[nodiscard]] constexpr bool reads_prediction(method how) {
  return how == method::prediction || how == method::automatic;
}

/// The most tokens of a draft from an MTP layer.
inline constexpr std::uint32_t mtp_tokens_max = 8;
/// Whether the target model's MTP layer may be asked.
[[nodiscard]] constexpr bool asks_mtp(method how) { return how == method::mtp || how == method::automatic; }

/// Whether a draft model may be asked.
[[nodiscard]] constexpr bool asks_model(method how) {
  return how == method::assisted || how == method::blazedit || how == method::automatic;
}

/// The maximum length of a draft with these options.
[[nodiscard]] constexpr std::uint32_t draft_tokens_max(const draft_options& o) {
  switch (o.how) {
    case method::lookup:
    case method::prediction:
      return o.lookup_tokens_max;
    case method::assisted:
      return o.assisted_tokens_max;
    case method::blazedit:
      return o.max_num_run * (o.micro_draft_tokens + 1);
    case method::automatic:
      return std::max(o.lookup_tokens_max, o.max_num_run * (o.micro_draft_tokens + 1));
    case method::mtp:
      return mtp_tokens_max;
    case method::regular:
    case method::last_:
      break;
  }
  return 0;
}

}  // namespace redline::draft
