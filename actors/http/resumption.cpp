#include "actors/http/resumption.hpp"

#include <algorithm>

#include "runtime/actor/codec.hpp"
#include "runtime/base/hash.hpp"
#include "runtime/base/hex.hpp"
#include "runtime/base/version.hpp"

namespace redline::actors {
namespace {

constexpr const char* header = "Last-Event-ID";

/// A request for an edit session has no prompt of its own and one answer.
std::size_t count_choices(const api::generation_request& asked) {
  return std::max<std::size_t>(1, asked.prompts.size()) * asked.answers_per_prompt();
}

api::api_error bad_id(std::string message, std::string code) {
  return api::bad_field(header, std::move(message), std::move(code));
}

/// A digest of what an answer depends on in addition to its request: the model, and this server's defaults.
std::uint32_t digest_surroundings(const served_model& model, const api::generation_request& asked,
                                  const kv::eviction_options& eviction) {
  auto sampling = asked.sampling;
  sampling.seed = 0;  // comes from the request or from the answer's id
  actor::encoder rules;
  actor::encode_value(rules, sampling);
  actor::encode_value(rules, asked.evicting(eviction));
  return fnv1a()
      .add(model.name)
      .add(std::uint8_t{0})
      .add(to_hex(model.digest))
      .add(std::uint8_t{0})
      .add(version())
      .add(std::uint8_t{0})
      .add(std::to_string(model.answers->context_max()))
      .add(std::uint8_t{0})
      .add(rules.take())
      .folded();
}

}  // namespace

api::checked<std::optional<api::event_id>> read_resumption(const served_model& model,
                                                           const api::generation_request& asked,
                                                           const kv::eviction_options& eviction,
                                                           const std::string& last_event_id) {
  if (last_event_id.empty()) {
    if (asked.resume_texts.empty()) return std::optional<api::event_id>{};
    return api::bad_field("redline.resume_text",
                          "'redline.resume_text' needs the header Last-Event-ID, which says where to resume.");
  }
  if (!asked.stream) {
    return bad_id("Last-Event-ID asks for the rest of a stream: set 'stream' to true, or leave the header out.",
                  "not_a_stream");
  }
  auto had = api::parse_event_id(last_event_id);
  if (!had) {
    return bad_id(
        "Last-Event-ID is not the id of an event of this server's streams: send the last 'id' received, or leave the "
        "header out to start again.",
        "invalid_event_id");
  }
  if (had->request_digest != asked.digest || had->choices.size() != count_choices(asked)) {
    return bad_id(
        "Last-Event-ID belongs to a stream of another request: send the body of that request, or leave the header out "
        "to "
        "start again.",
        "event_id_of_other_request");
  }
  const auto is_of_others = [&](const api::event_id::position& p) {
    return model.numerics && p.is_begun && p.numerics != model.numerics.value;
  };
  if (had->model_digest != digest_surroundings(model, asked, eviction) ||
      std::ranges::any_of(had->choices, is_of_others)) {
    return bad_id(
        "Last-Event-ID belongs to a stream of another model, build, numerics or context length, or of a server with "
        "other defaults for sampling or eviction, which this server cannot resume: leave the header out to start "
        "again.",
        "event_id_of_other_model");
  }
  if (asked.resume_texts.size() > had->choices.size()) {
    return api::bad_field("redline.resume_text", "'redline.resume_text' has " +
                                                     std::to_string(asked.resume_texts.size()) +
                                                     " texts, more than the " + std::to_string(had->choices.size()) +
                                                     " choices of the stream.");
  }
  return had;
}

api::event_id first_event_id(const served_model& model, const api::generation_request& asked,
                             const kv::eviction_options& eviction, std::uint64_t high, std::uint64_t low,
                             std::int64_t created_seconds) {
  return {.response_high = high,
          .response_low = low,
          .created_seconds = created_seconds,
          .request_digest = asked.digest,
          .model_digest = digest_surroundings(model, asked, eviction),
          .choices = std::vector<api::event_id::position>(count_choices(asked))};
}

api::api_error diverged_answer() {
  return {
      409,
      "invalid_request_error",
      "The answer as computed now does not begin with what the stream of Last-Event-ID had sent, so the stream cannot "
      "be resumed: leave the header out to start again.",
      header,
      "answer_diverged",
      {}};
}

}  // namespace redline::actors
