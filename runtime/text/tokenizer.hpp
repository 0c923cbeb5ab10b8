#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/gguf/gguf_file.hpp"
#include "runtime/text/special_splitter.hpp"
#include "runtime/text/vocabulary.hpp"

namespace redline::text {

struct encode_options {
  /// Text that spells a control token becomes that token. Off for what a user wrote, on for a rendered template.
  bool parse_special = false;
  /// Puts BOS in front and EOS at the end where the file asks for them.
  bool add_bos_eos = false;
  /// The text goes on after a cut (`cuts_between`): no blank is put before its first word.
  bool continues = false;
  /// With parse_special: a character that stands inside what spells a control token and is not to be one (`shield`). It
  /// is taken out again. Empty: none.
  std::string_view shield = {};
};

struct decode_options {
  /// Control, unknown and unused tokens give their text instead of nothing.
  bool render_special = false;
  /// Takes off the blank that `encode` put before the first word (SentencePiece); for whole texts, not for the
  /// continuation of one.
  bool strip_space_prefix = false;
};

/// Bytes <-> tokens of one model file. Immutable, so safe to use from any number of threads.
class tokenizer {
 public:
  /// Byte-level BPE (`tokenizer.ggml.model` = "gpt2") or SentencePiece ("llama"). A failure names the file and the key.
  static result<std::shared_ptr<const tokenizer>> from_file(const gguf::gguf_file& file);

  virtual ~tokenizer() = default;
  tokenizer(const tokenizer&) = delete;
  tokenizer& operator=(const tokenizer&) = delete;

  /// Any bytes; time grows as n log n whatever they are.
  [[nodiscard]] std::vector<token> encode(std::string_view text, encode_options options = {}) const;

  /// The text holds what parse_special makes a control token of.
  [[nodiscard]] bool spells_control(std::string_view text) const { return !specials_.find_parsed_only(text).empty(); }
  /// The text with `mark` put into each place that spells a control token, after its first character, so that it does
  /// not. mark: one character of UTF-8 that the text does not hold.
  [[nodiscard]] std::string shield(std::string_view text, std::string_view mark) const;

  /// True when a text without special tokens parsed may be cut between these two bytes: the tokens of the parts, the
  /// second encoded with `continues`, are those of the whole, whatever else the parts hold. Never between bytes of
  /// characters beyond ASCII. A vocabulary may have no such place.
  [[nodiscard]] bool cuts_between(char left, char right) const {
    return is_ascii(left) && is_ascii(right) && cuts_[cut_index(left, right)];
  }

  /// The bytes that one token stands for; user-defined tokens give their text. Empty for special tokens (unless
  /// rendered) and for ids outside of the vocabulary. May be part of a character.
  [[nodiscard]] std::string_view piece(token id, bool render_special = false) const;
  /// The pieces joined; invalid_argument for an id outside of the vocabulary.
  [[nodiscard]] result<std::string> decode(std::span<const token> ids, decode_options options = {}) const;

  /// True when `decode(encode(x))` is x for every x, UTF-8 or not. Byte-level BPE promises it when every byte has a
  /// token; a few vocabularies lack those that UTF-8 never uses, and write U+FFFD for them. SentencePiece cannot
  /// promise it: a literal U+2581 comes back as a blank.
  [[nodiscard]] bool keeps_every_byte() const { return keeps_every_byte_ && covers_every_byte(); }

  /// False when white space after some tokens is in no token.
  [[nodiscard]] bool covers_every_byte() const { return !specials_.swallows_space(true); }

  [[nodiscard]] const vocabulary& vocab() const { return vocab_; }
  [[nodiscard]] std::size_t size() const { return vocab_.size(); }
  [[nodiscard]] bool is_end_of_generation(token id) const { return vocab_.is_end_of_generation(id); }
  [[nodiscard]] std::uint64_t digest() const { return vocab_.digest(); }

 protected:
  explicit tokenizer(vocabulary vocab) : vocab_(std::move(vocab)), specials_(vocab_), pieces_(vocab_.size()) {}

  /// Appends the tokens of ordinary text, never empty. `first_of_stretch`: it starts the text or follows a token that
  /// was matched as a whole.
  virtual void encode_ordinary(std::string_view text, bool first_of_stretch, std::vector<token>& out) const = 0;

  /// What ordinary tokens stand for; set by the derived class while it is built. Special and user-defined tokens'
  /// entries stay empty: they are their text.
  std::string& piece_entry(token id) { return pieces_[static_cast<std::size_t>(id)]; }
  void set_keeps_every_byte(bool keeps) { keeps_every_byte_ = keeps; }
  /// Called once while the object is built: where merging, as the derived class does it, can never reach across. What
  /// the texts matched as a whole add to that is known here.
  void set_cuts(const std::function<bool(char left, char right)>& can_cut);

 private:
  static constexpr std::size_t ascii_count = 128;
  static bool is_ascii(char byte) { return static_cast<unsigned char>(byte) < ascii_count; }
  static std::size_t cut_index(char left, char right) {
    return static_cast<std::size_t>(left) * ascii_count + static_cast<std::size_t>(right);
  }

  void encode_stretch(std::string_view text, bool parse_special, bool first_of_stretch, std::vector<token>& out) const;
  void encode_shielded(std::string_view text, encode_options options, std::vector<token>& out) const;

  const vocabulary vocab_;
  const special_splitter specials_;
  std::vector<std::string> pieces_;
  bool keeps_every_byte_ = false;
  std::vector<bool> cuts_ = std::vector<bool>(ascii_count * ascii_count);
};

}  // namespace redline::text
