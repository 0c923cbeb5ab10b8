#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace redline::actors {

/// A file to rewrite in a conversation with a model: the user's message contains the instruction and the file in a code
/// fence, and the answer is the whole new file in the same fence. The model is shown the file's text; what it makes of
/// it gets the form of the file's bytes back (`text::with_form_of`).
struct edit_task {
  std::string path;
  std::string before;  // the file's bytes
  std::string instruction;
};

/// Fails for bytes that are not UTF-8 text, which must never be edited.
result<void> check_editable(const edit_task& task);

/// The file as the model is shown it, from which predictions and copies are made.
std::string shown_file(const edit_task& task);
/// The user's message. A final line feed is added where the file lacks one; `file_of_answer` removes it.
std::string message_of(const edit_task& task);
/// Which operations edit programs may use, and how the message describes them.
struct program_wording {
  bool lines = true;
  bool tokens = false;
  bool anchors = false;  // copies of lines also state how their first and last line begin
};
/// The same for an answer that is a program: the file with line numbers.
std::string program_message_of(const edit_task& task, const program_wording& how = {});

/// Whether the model itself ended an answer with this `finish_reason` of an API; otherwise something cut it.
bool is_models_own_end(std::string_view finish_reason);

/// What a model wrote for a task.
struct edit_answer {
  std::string text;
  bool is_whole = false;    // the model ended it
  bool is_program = false;  // the text is the result of a program over the file, without a fence
};
/// Extracts the bytes of the new file from a model's answer, however it was made. The fence may be longer than the
/// message's, and the last non-blank line must close it. Code blocks in the file that name a language may use the same
/// fence. Fails for everything else, because a file that ends at the wrong fence would be cut short, and for every
/// answer that something cut, because one cut after an inner fence looks whole.
result<std::string> file_of_answer(const edit_task& task, const edit_answer& answer);

/// The answer with `after` as the new file: the inverse of `file_of_answer`, except for a missing final line feed.
std::string answer_of(const edit_task& task, const std::string& after);

}  // namespace redline::actors
