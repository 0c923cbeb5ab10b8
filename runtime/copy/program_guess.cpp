#include "runtime/copy/program_guess.hpp"

namespace redline::copy {
namespace {

using step = program_state::step;

constexpr std::size_t guess_bytes_max = 128;

/// The rest of `whole` after its prefix `begun`, followed by `end`; only `end` if `begun` is not a prefix.
std::string rest_of(const std::string& whole, const std::string& begun, char end) {
  return (whole.starts_with(begun) ? whole.substr(begun.size()) : std::string()) + end;
}
std::string rest_of_number(std::uint64_t whole, std::uint64_t begun, char end) {
  return rest_of(std::to_string(whole), begun == 0 ? std::string() : std::to_string(begun), end);
}

const copy_op* last_copy_of(const program& p) {
  for (auto op = p.rbegin(); op != p.rend(); ++op) {
    if (const auto* c = std::get_if<copy_op>(&*op)) return c;
  }
  return nullptr;
}

class guesser {
 public:
  explicit guesser(const program_draft& p)
      : p_(p),
        state_(p.state),
        last_(last_copy_of(p.written)),
        after_text_(!p.written.empty() && std::holds_alternative<gen_op>(p.written.back())) {}

  std::string run() {
    std::string out;
    while (out.size() < guess_bytes_max) {
      const std::string more = next();
      if (more.empty()) break;
      after_text_ = after_text_ || state_.at == step::gen_body;
      for (const char c : more) {
        if (!p_.machine.advance(state_, c)) return out;
        out += c;
      }
    }
    return out;
  }

 private:
  [[nodiscard]] std::string next() const {
    const auto& shape = p_.machine.shape();
    switch (state_.at) {
      case step::after_lt:
        return op();
      case step::file_number:
        return rest_of_number(last_ != nullptr ? last_->file : 1, state_.number, '"');
      case step::unit_choice: {
        const bool tokens = last_ != nullptr ? last_->of == unit::tokens : !shape.line_spans;
        return tokens ? "t" : "l";
      }
      case step::first_number:
        return rest_of_number(first_unit(), state_.number, '-');
      case step::last_number:
        return rest_of_number(shape.count(state_.op.file, state_.op.of), state_.number, '"');
      case step::first_anchor:
        return rest_of(anchors_of(state_.op, p_.files).first, p_.anchors.first, '"');
      case step::last_anchor:
        return rest_of(anchors_of(state_.op, p_.files).last, p_.anchors.last, '"');
      case step::gen_body:
        // A text may end after a line; within a line anything can follow.
        return state_.matched > 0 || p_.text.ends_with('\n') ? std::string("</gen>").substr(state_.matched)
                                                             : std::string();
      default:
        return std::string(p_.machine.word_left(state_));
    }
  }

  [[nodiscard]] std::string op() const {
    const bool at_end = last_ != nullptr && last_->last >= p_.machine.shape().count(last_->file, last_->of);
    if (at_end) return "/";
    return last_ == nullptr || after_text_ ? "c" : "g";
  }

  [[nodiscard]] std::uint32_t first_unit() const {
    const bool same_file = last_ != nullptr && last_->file == state_.op.file && last_->of == state_.op.of;
    if (same_file) return last_->last + 2;
    return after_text_ ? 2 : 1;
  }

  const program_draft& p_;
  program_state state_;
  const copy_op* last_;
  bool after_text_;
};

}  // namespace

std::string guess_rest(const program_draft& p) { return guesser(p).run(); }

}  // namespace redline::copy
