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
  /// Whether the text of a control token becomes that token. Off for user text, on for a rendered template.
  bool parse_special = false;
  /// Puts BOS in front and EOS at the end if the file requests them.
  bool add_bos_eos = false;
  /// The text continues after a cut (`cuts_between`): no space is put before its first word.
  bool continues = false;
  /// With parse_special: a character inside the text of a control token that must not become one (`shield`). It is
  /// removed again. May be empty.
  std::string_view shield = {};
};

struct decode_options {
  /// Whether control, unknown and unused tokens give their text instead of nothing.
  bool render_special = false;
  /// Removes the space that `encode` put before the first word (SentencePiece); for whole texts, not for the
  /// continuation of one.
  bool strip_space_prefix = false;
};

/// Converts between bytes and tokens of one model file. Immutable and thread-safe.
class tokenizer {
 public:
  /// Byte-level BPE (`tokenizer.ggml.model` = "gpt2") or SentencePiece ("llama"). A failure names the file and the key.
  static result<std::shared_ptr<const tokenizer>> from_file(const gguf::gguf_file& file);

  virtual ~tokenizer() = default;
  tokenizer(const tokenizer&) = delete;
  tokenizer& operator=(const tokenizer&) = delete;

  /// Accepts any bytes; takes O(n log n) time for all of them.
  [[nodiscard]] std::vector<token> encode(std::string_view text, encode_options options = {}) const;

  /// Whether the text contains something that parse_special turns into a control token.
  [[nodiscard]] bool spells_control(std::string_view text) const { return !specials_.find_parsed_only(text).empty(); }
  /// Inserts `mark` into each text of a control token, after its first character, so that it is not recognized. mark:
  /// one character of UTF-8 that does not occur in the text.
  [[nodiscard]] std::string shield(std::string_view text, std::string_view mark) const;

  /// Whether a text without parse_special may be cut between these two bytes: the tokens of the parts, the second
  /// encoded with `continues`, equal those of the whole, whatever else the parts contain. Never true between bytes of
  /// characters beyond ASCII. A vocabulary may have no such cut.
  [[nodiscard]] bool cuts_between(char left, char right) const {
    return is_ascii(left) && is_ascii(right) && cuts_[cut_index(left, right)];
  }

  /// The bytes that one token represents; user-defined tokens give their text. Empty for special tokens (unless
  /// rendered) and for ids outside the vocabulary. May be a part of a character.
  [[nodiscard]] std::string_view piece(token id, bool render_special = false) const;
  /// Joins the pieces; invalid_argument for an id outside the vocabulary.
  [[nodiscard]] result<std::string> decode(std::span<const token> ids, decode_options options = {}) const;

  /// Whether `decode(encode(x))` is x for every x, UTF-8 or not. Byte-level BPE guarantees it if every byte has a
  /// token; a few vocabularies lack bytes that UTF-8 never uses, and write U+FFFD for them. SentencePiece cannot
  /// guarantee it: a literal U+2581 becomes a space.
  [[nodiscard]] bool keeps_every_byte() const { return keeps_every_byte_ && covers_every_byte(); }

  /// False if whitespace after some tokens is in no token.
  [[nodiscard]] bool covers_every_byte() const { return !specials_.swallows_space(true); }

  [[nodiscard]] const vocabulary& vocab() const { return vocab_; }
  [[nodiscard]] std::size_t size() const { return vocab_.size(); }
  [[nodiscard]] bool is_end_of_generation(token id) const { return vocab_.is_end_of_generation(id); }
  [[nodiscard]] std::uint64_t digest() const { return vocab_.digest(); }

 protected:
  explicit tokenizer(vocabulary vocab) : vocab_(std::move(vocab)), specials_(vocab_), pieces_(vocab_.size()) {}

  /// Appends the tokens of ordinary text, which is never empty. `first_of_segment`: it starts the text or follows a
  /// token that was matched as a whole.
  virtual void encode_ordinary(std::string_view text, bool first_of_segment, std::vector<token>& out) const = 0;

  /// The bytes of an ordinary token; set by the derived class during construction. Entries of special and user-defined
  /// tokens stay empty, because their text represents them.
  std::string& piece_entry(token id) { return pieces_[static_cast<std::size_t>(id)]; }
  void set_keeps_every_byte(bool keeps) { keeps_every_byte_ = keeps; }
  /// Sets the cuts that the derived class's merging can never cross; called once during construction. Texts matched as
  /// a whole are handled here.
  void set_cuts(const std::function<bool(char left, char right)>& can_cut);

 private:
  static constexpr std::size_t ascii_count = 128;
  static bool is_ascii(char byte) { return static_cast<unsigned char>(byte) < ascii_count; }
  static std::size_t cut_index(char left, char right) {
    return static_cast<std::size_t>(left) * ascii_count + static_cast<std::size_t>(right);
  }

  void encode_segment(std::string_view text, bool parse_special, bool first_of_segment, std::vector<token>& out) const;
  void encode_shielded(std::string_view text, encode_options options, std::vector<token>& out) const;

  const vocabulary vocab_;
  const special_splitter specials_;
  std::vector<std::string> pieces_;
  bool keeps_every_byte_ = false;
  std::vector<bool> cuts_ = std::vector<bool>(ascii_count * ascii_count);
};

}  // namespace redline::text
