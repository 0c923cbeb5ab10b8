#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/grammar/tool_automaton.hpp"
#include "runtime/tools/channel_reader.hpp"

namespace redline::grammar {

/// A piece of an answer that may call tools.
struct answer_part {
  enum class kind : std::uint8_t {
    text,       // what the answer says
    reasoning,  // what it says to itself, of models with channels
    call,       // a call begins: the tool's name
    arguments,  // of the last call: JSON
    call_end,   // they are whole
  };
  kind what = kind::text;
  std::string text;
  bool operator==(const answer_part&) const = default;
};

/// Takes an answer's text apart into what it says and what it calls, as it comes. Calls are found by the automaton that
/// the answer was held to, so the two cannot disagree; a text that was not held to it is text from where it differs.
/// Nothing is lost but blanks beside calls and the markup. Text that may be the beginning of a call is held back.
class tool_reader {
 public:
  explicit tool_reader(std::shared_ptr<const tool_automaton> rules);

  /// text: whole characters.
  [[nodiscard]] std::vector<answer_part> feed(std::string_view text);
  /// The answer is over, perhaps in the middle of a call.
  [[nodiscard]] std::vector<answer_part> finish();

  /// Calls that have their name.
  [[nodiscard]] std::uint32_t calls_count() const { return calls_; }

 private:
  using phase = tool_automaton::phase;
  void take(char byte);
  void read_call(phase before, phase now, char byte);
  void begin_call(const std::string& name);
  void say(std::string_view text);
  void add_channels(const std::vector<tools::channel_reader::part>& parts);
  void add(answer_part::kind what, std::string_view text);
  void add_escaped(char byte);

  std::shared_ptr<const tool_automaton> rules_;
  automaton_state state_;
  std::vector<answer_part> out_;
  std::string held_;    // may be the beginning of a call, or is the markup of one that has no name yet
  std::string blanks_;  // after what was said
  std::string value_;   // the end of an element's text, which may be markup
  std::optional<tools::channel_reader> channels_;
  bool in_call_ = false;     // that has its name
  bool after_call_ = false;  // nothing was said since
  bool first_element_ = true;
  bool is_broken_ = false;
  std::uint32_t calls_ = 0;
};

}  // namespace redline::grammar
