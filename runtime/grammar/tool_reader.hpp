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
    reasoning,  // what it says to itself, for models with channels
    call,       // the beginning of a call, with the tool's name
    arguments,  // JSON, of the last call
    call_end,   // the arguments are complete
  };
  kind what = kind::text;
  std::string text;
  bool operator==(const answer_part&) const = default;
};

/// Splits an answer's text into what it says and what it calls, as it arrives. The automaton that constrained the
/// answer finds the calls, so the two cannot disagree. An answer that deviates from it is text from there on. Only
/// markup and whitespace around calls are dropped. Text that may be the beginning of a call is kept back.
class tool_reader {
 public:
  explicit tool_reader(std::shared_ptr<const tool_automaton> rules);

  /// `text` must consist of whole characters.
  [[nodiscard]] std::vector<answer_part> feed(std::string_view text);
  /// Ends the answer, perhaps in the middle of a call, and returns the rest of it.
  [[nodiscard]] std::vector<answer_part> finish();

  /// The number of calls whose name is complete.
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
  std::string held_;        // a possible beginning of a call, or the markup of one without its name yet
  std::string whitespace_;  // whitespace after what was said
  std::string value_;       // the end of an element's text, which may be markup
  std::optional<tools::channel_reader> channels_;
  bool in_call_ = false;     // in a call whose name is complete
  bool after_call_ = false;  // nothing was said since the last call
  bool first_element_ = true;
  bool is_broken_ = false;
  std::uint32_t calls_ = 0;
};

}  // namespace redline::grammar
