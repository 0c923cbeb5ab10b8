#include "actors/cli/help/candidates.hpp"

#include <algorithm>
#include <vector>

namespace redline::actors::cli {
namespace {

std::string line_of(const std::string& word, std::string meaning) {
  std::replace_if(
      meaning.begin(), meaning.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return word + (meaning.empty() ? "" : "\t" + meaning) + "\n";
}

std::string values_of(const argument_text& a) {
  if (a.kind == value_kind::file) return ":file\n";
  if (a.kind == value_kind::folder) return ":folder\n";
  std::string out;
  for (const std::string& one : a.choices) out += line_of(one, one == a.preset ? "default" : "");
  return out;
}

/// Follows the words before the cursor to the command and argument that come next.
class place_finder {
 public:
  explicit place_finder(const command_text& program) : program_(&program), command_(&program) {}

  void take(const std::string& word) {
    if (pending_ != nullptr) {
      if (word != "=") pending_ = nullptr;
    } else if (!ended_ && word == "--") {
      ended_ = true;
    } else if (!ended_ && word.starts_with('-')) {
      const argument_text* a = find(word.substr(0, word.find('=')));
      if (a == nullptr) return;
      if (!a->repeated) given_.push_back(a);
      if (a->kind != value_kind::none && word.find('=') == std::string::npos) pending_ = a;
    } else if (const command_text* sub = command_->find(word); sub != nullptr) {
      command_ = sub;
    } else {
      ++arguments_;
    }
  }
  [[nodiscard]] std::string offer(const std::string& begun) const {
    if (pending_ != nullptr) return values_of(*pending_);
    if (!ended_ && begun.starts_with("--") && begun.find('=') != std::string::npos) {
      const argument_text* a = find(begun.substr(0, begun.find('=')));
      return a == nullptr ? "" : values_of(*a);
    }
    if (!ended_ && begun.starts_with('-')) return flags();
    if (command_->hands_over) return ":file\n";
    std::string out;
    for (const command_text& sub : command_->commands) out += line_of(sub.name, short_help(sub.help));
    if (!out.empty()) return out;
    std::size_t before = arguments_;
    for (const argument_text& a : command_->arguments) {
      if (a.is_positional() && (a.repeated || before-- == 0)) return values_of(a);
    }
    return {};
  }

 private:
  /// The options of the command and of the program, which may also stand after a command.
  [[nodiscard]] std::vector<const argument_text*> options() const {
    std::vector<const argument_text*> all;
    for (const argument_text& a : command_->arguments) {
      if (!a.is_positional()) all.push_back(&a);
    }
    if (command_ == program_ || command_->hands_over) return all;
    for (const argument_text& a : program_->arguments) {
      // A command has its own or does not have these.
      if (a.flags.back() != "--help" && a.flags.back() != "--version") all.push_back(&a);
    }
    return all;
  }
  [[nodiscard]] const argument_text* find(const std::string& flag) const {
    for (const argument_text* a : options()) {
      if (std::find(a->flags.begin(), a->flags.end(), flag) != a->flags.end()) return a;
    }
    return nullptr;
  }
  [[nodiscard]] std::string flags() const {
    std::string out;
    for (const argument_text* a : options()) {
      if (std::find(given_.begin(), given_.end(), a) != given_.end()) continue;
      for (const std::string& flag : a->flags) out += line_of(flag, short_help(a->help));
    }
    return out;
  }

  const command_text* program_;
  const command_text* command_;
  const argument_text* pending_ = nullptr;  // the option whose value comes next
  std::vector<const argument_text*> given_;
  std::size_t arguments_ = 0;
  bool ended_ = false;  // after "--"
};

}  // namespace

std::string candidates(const command_text& program, std::span<const std::string> words) {
  if (words.empty()) return {};
  place_finder place(program);
  for (const std::string& word : words.first(words.size() - 1)) place.take(word);
  return place.offer(words.back());
}

}  // namespace redline::actors::cli
