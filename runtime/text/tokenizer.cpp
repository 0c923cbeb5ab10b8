#include "runtime/text/tokenizer.hpp"

#include "runtime/text/bpe_tokenizer.hpp"
#include "runtime/text/spm_tokenizer.hpp"

namespace redline::text {

result<std::shared_ptr<const tokenizer>> tokenizer::from_file(const gguf::gguf_file& file) {
  REDLINE_TRY_ASSIGN(vocabulary vocab, vocabulary::load(file));
  if (vocab.kind() == vocabulary_kind::byte_level_bpe) return bpe_tokenizer::make(std::move(vocab), file);
  return spm_tokenizer::make(std::move(vocab), file);
}

std::vector<token> tokenizer::encode(std::string_view text, encode_options options) const {
  std::vector<token> out;
  out.reserve(text.size() / 3 + 2);
  if (options.add_bos_eos && vocab_.adds_bos() && vocab_.bos()) out.push_back(*vocab_.bos());
  if (options.parse_special && !options.shield.empty() && text.find(options.shield) != std::string_view::npos) {
    encode_shielded(text, options, out);
  } else {
    encode_segment(text, options.parse_special, !options.continues, out);
  }
  if (options.add_bos_eos && vocab_.adds_eos() && vocab_.eos()) out.push_back(*vocab_.eos());
  return out;
}

void tokenizer::encode_segment(std::string_view text, bool parse_special, bool first_of_segment,
                               std::vector<token>& out) const {
  for (const special_splitter::fragment& part : specials_.split(text, parse_special)) {
    if (part.special)
      out.push_back(*part.special);
    else
      encode_ordinary(part.text, first_of_segment, out);
    first_of_segment = part.special.has_value();
  }
}

/// Control tokens are found in the text with its shields; other tokens in the spans between them, without shields.
void tokenizer::encode_shielded(std::string_view text, encode_options options, std::vector<token>& out) const {
  std::string stretch;
  bool first_of_segment = !options.continues;
  const auto end_stretch = [&] {
    if (!stretch.empty()) encode_segment(stretch, false, first_of_segment, out);
    stretch.clear();
  };
  for (const special_splitter::fragment& part : specials_.split(text, true)) {
    const bool is_control = part.special && vocab_.type(*part.special) != token_type::user_defined;
    if (is_control) {
      end_stretch();
      out.push_back(*part.special);
      first_of_segment = true;
    } else if (part.special) {
      stretch += vocab_.text(*part.special);
    } else {
      std::string_view rest = part.text;
      for (auto at = rest.find(options.shield); at != std::string_view::npos; at = rest.find(options.shield)) {
        stretch += rest.substr(0, at);
        rest.remove_prefix(at + options.shield.size());
      }
      stretch += rest;
    }
  }
  end_stretch();
}

std::string tokenizer::shield(std::string_view text, std::string_view mark) const {
  std::string out;
  std::size_t from = 0;
  for (const std::size_t start : specials_.find_parsed_only(text)) {
    std::size_t next = start + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
    out += text.substr(from, next - from);
    out += mark;
    from = next;
  }
  out += text.substr(from);
  return out;
}

void tokenizer::set_cuts(const std::function<bool(char left, char right)>& can_cut) {
  for (std::size_t i = 0; i < cuts_.size(); ++i) {
    cuts_[i] = can_cut(static_cast<char>(i / ascii_count), static_cast<char>(i % ascii_count));
  }
  const auto never_behind = [this](char left) {
    for (std::size_t right = 0; right < ascii_count; ++right) cuts_[cut_index(left, static_cast<char>(right))] = false;
  };
  // After a text matched as a whole, a new span begins and whitespace may be swallowed. A continuation does not see
  // what precedes it, so it would miss both.
  const bool swallows = specials_.swallows_space(false);
  for (const std::string_view matched : specials_.always_matched()) {
    for (std::size_t i = 1; i < matched.size(); ++i) {
      if (is_ascii(matched[i - 1]) && is_ascii(matched[i])) cuts_[cut_index(matched[i - 1], matched[i])] = false;
    }
    if ((swallows || vocab_.adds_space_prefix()) && is_ascii(matched.back())) never_behind(matched.back());
  }
  if (!swallows) return;
  for (const char space : {' ', '\t', '\n', '\v', '\f', '\r'}) never_behind(space);
}

std::string_view tokenizer::piece(token id, bool render_special) const {
  if (!vocab_.contains(id)) return {};
  switch (vocab_.type(id)) {
    case token_type::user_defined:
      return vocab_.text(id);
    case token_type::unknown:
    case token_type::control:
    case token_type::unused:
      return render_special ? vocab_.text(id) : std::string_view();
    case token_type::undefined:
    case token_type::normal:
    case token_type::byte:
      break;
  }
  return pieces_[static_cast<std::size_t>(id)];
}

result<std::string> tokenizer::decode(std::span<const token> ids, decode_options options) const {
  std::string out;
  bool at_start = options.strip_space_prefix && vocab_.adds_space_prefix();
  for (const token id : ids) {
    if (!vocab_.contains(id)) {
      return failure{errc::invalid_argument,
                     "token " + std::to_string(id) + " is outside of the vocabulary of " + std::to_string(size())};
    }
    std::string_view bytes = piece(id, options.render_special);
    const bool ordinary = vocab_.type(id) == token_type::normal;
    if (at_start && ordinary && bytes.starts_with(' ')) bytes.remove_prefix(1);
    // A special token in front, such as BOS, does not start the text; the first word comes after it.
    if (!bytes.empty() || ordinary) at_start = false;
    out.append(bytes);
  }
  return out;
}

}  // namespace redline::text
