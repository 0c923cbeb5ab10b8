#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/result.hpp"

namespace redline::actors {

/// A file to rewrite as a conversation with a model: the user's message holds the instruction and the file in a code
/// fence, the answer is the whole new file in the same fence.
struct edit_task {
  std::string path;
  std::string before;
  std::string instruction;
};

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
/// The new file out of a model's answer. The fence may be longer than the message's and must be closed by the last line
/// that is not blank; code blocks inside of the file that name a language may use the same fence. Fails for everything
/// else, because a file that ends at the wrong fence would be cut short.
result<std::string> file_of_answer(const edit_task& task, const std::string& answer);

/// The answer that holds `after` as the new file: what `file_of_answer` undoes, but for a missing final line feed.
std::string answer_of(const edit_task& task, const std::string& after);

}  // namespace redline::actors
