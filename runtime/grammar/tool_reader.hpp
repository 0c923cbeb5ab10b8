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

/// Splits an answer's text into what it says and what it calls, as it arrives. An answer that deviates from its format
/// is text from there on. Only markup and whitespace around calls are dropped. Text that may be the beginning of a call
/// is kept back.
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
  /// What the next byte belongs to.
  enum class region : std::uint8_t {
    bare,         // perhaps the `bare_begin` of a call, at the beginning of the answer
    text,         // text, or perhaps the `begin` of a call
    header,       // the markup and name of a call
    arguments,    // a JSON object
    element,      // the markup and name of an element, or the end of the arguments
    value,        // an element's value, or perhaps its end
    after_value,  // a line feed
    after_call,   // markup
    broken,       // text to the end
  };
  void take(char byte);
  void take_text(char byte);
  void take_header(char byte);
  void take_argument(char byte);
  void take_element(char byte);
  void take_value(char byte);
  void take_after_call(char byte);
  void begin_call(const callable_tool& tool);
  void end_call();
  void give_up();
  void say(std::string_view text);
  void add_channels(const std::vector<tools::channel_reader::part>& parts);
  void add(answer_part::kind what, std::string_view text);
  void add_value(std::string_view text);

  std::shared_ptr<const tool_automaton> rules_;
  region at_ = region::text;
  std::vector<answer_part> out_;
  std::string held_;                        // what of the region was not told yet
  std::size_t marked_ = 0;                  // header: bytes of held_ before `before_name`, or before the name
  std::string_view before_name_;            // header: the markup between those and the name
  const callable_tool* tool_ = nullptr;     // of the open call
  const written_element* value_ = nullptr;  // the open element
  std::uint32_t depth_ = 0;                 // arguments: open braces and brackets
  bool in_string_ = false, is_escaped_ = false;
  bool is_first_element_ = true;
  std::string whitespace_;  // whitespace after what was said
  std::optional<tools::channel_reader> channels_;
  bool after_call_ = false;  // nothing was said since the last call
  std::uint32_t calls_ = 0;
};

}  // namespace redline::grammar
