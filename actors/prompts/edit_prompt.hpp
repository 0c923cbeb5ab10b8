#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace redline::actors {

/// A file to rewrite as a conversation with a model: the user's message holds the instruction and the file in a code
/// fence, the answer is the whole new file in the same fence. The model is shown the file's text, and what it makes of
/// it gets the form of the file's bytes back (`text::with_form_of`).
struct edit_task {
  std::string path;
  std::string before;  // the file's bytes
  std::string instruction;
};

/// Fails for bytes that are no text in UTF-8, which no door may edit.
result<void> check_editable(const edit_task& task);

/// The file as the model is shown it: what predictions and copies of it are made from.
std::string shown_file(const edit_task& task);
/// The user's message. A final line feed is added where the file lacks one, and taken away again by `file_of_answer`.
std::string message_of(const edit_task& task);
/// What programs may say, and how they are asked for.
struct program_wording {
  bool lines = true;
  bool tokens = false;
  bool anchors = false;  // copies of lines also say how their first and last line begin
};
/// The same for an answer that is a program: the file with line numbers.
std::string program_message_of(const edit_task& task, const program_wording& how = {});

/// Whether the model itself ended an answer with this `finish_reason` of an API; else something cut it.
bool is_models_own_end(std::string_view finish_reason);

/// What a model wrote for a task.
struct edit_answer {
  std::string text;
  bool is_whole = false;    // the model ended it
  bool is_program = false;  // the text is what a program over the file resolved to, without a fence
};
/// The bytes of the new file out of a model's answer; for every way by which an answer becomes a file. The fence may be
/// longer than the message's and must be closed by the last line that is not blank; code blocks inside of the file that
/// name a language may use the same fence. Fails for everything else, because a file that ends at the wrong fence would
/// be cut short, and for every answer that something cut, because one cut behind an inner fence looks whole.
result<std::string> file_of_answer(const edit_task& task, const edit_answer& answer);

/// The answer that holds `after` as the new file: what `file_of_answer` undoes, but for a missing final line feed.
std::string answer_of(const edit_task& task, const std::string& after);

}  // namespace redline::actors
