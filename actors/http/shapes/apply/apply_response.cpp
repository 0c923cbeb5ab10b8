#include "actors/http/shapes/apply/apply_response.hpp"

#include <string>

#include "actors/http/shapes/apply/whole_answer_writer.hpp"

namespace redline::apply {
namespace {

using api::json;

class merged_writer final : public whole_answer_writer {
 public:
  merged_writer(actors::edit_task task, merged_shape::form how, api::response_head head)
      : task_(std::move(task)), how_(how), head_(std::move(head)) {}

  [[nodiscard]] std::optional<api::api_error> refusal(std::span<const api::choice> choices) const override {
    const auto file = merged(choices.front());
    if (file) return std::nullopt;
    return api::api_error{422, "unusable_answer", "The file could not be merged: " + file.error().context + ".",
                          "",  "unusable_answer", {}};
  }
  [[nodiscard]] std::string whole(std::span<const api::choice> choices, const api::usage_report& usage) const override {
    const auto file = merged(choices.front());
    if (how_ == merged_shape::form::chat) {
      api::choice merged = choices.front();
      merged.text = file ? *file : std::string();
      return api::completion_body(head_, {&merged, 1}, usage);
    }
    json object;
    object["mergedCode"] = file ? json(*file) : json(nullptr);
    object["usage"]["prompt_tokens"] = usage.prompt_tokens;
    object["usage"]["completion_tokens"] = usage.completion_tokens;
    object["usage"]["total_tokens"] = std::uint64_t{usage.prompt_tokens} + usage.completion_tokens;
    return dump_json(object);
  }

 private:
  [[nodiscard]] result<std::string> merged(const api::choice& one) const {
    return actors::file_of_answer(task_,
                                  {.text = one.text, .is_whole = actors::is_models_own_end(api::text_of(one.finish))});
  }

  const actors::edit_task task_;
  const merged_shape::form how_;
  const api::response_head head_;
};

}  // namespace

std::unique_ptr<api::answer_writer> merged_shape::make_writer(const api::response_head& head) const {
  return std::make_unique<merged_writer>(task_, how_, head);
}

}  // namespace redline::apply
