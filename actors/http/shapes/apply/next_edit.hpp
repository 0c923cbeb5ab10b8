#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "actors/http/request/answer_shape.hpp"
#include "actors/http/request/generation_request.hpp"

namespace redline::apply {

/// A body of POST /backend/next_edit_autocomplete as Sweep's editor plugins send it: a file with the cursor, the last
/// changes and pieces of other files. It becomes a prompt in the form that Sweep's next-edit models of February 2026
/// read. They rewrite the lines around the cursor; those above the cursor's line are given.
api::checked<api::generation_request> parse_next_edit(std::string_view body, const api::request_limits& limits = {});

/// The lines around the cursor, as a part of the file.
struct edit_window {
  std::string text;              // without the line feed of its last line
  std::string given;             // the beginning that the answer continues
  std::size_t first_offset = 0;  // where the text begins in the file, in the client's units
  bool counts_bytes = false;     // the units: bytes, else UTF-16 code units
};

/// Answers of that endpoint: a line of JSON with the range to replace, its new text and how sure the model is. The text
/// is empty if the model changes nothing, or if its answer was cut.
class next_edit_shape final : public api::answer_shape {
 public:
  explicit next_edit_shape(edit_window window) : window_(std::move(window)) {}
  [[nodiscard]] std::unique_ptr<api::answer_writer> make_writer(const api::response_head& head) const override;

 private:
  edit_window window_;
};

}  // namespace redline::apply
