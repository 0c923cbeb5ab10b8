#include "actors/serving/answer_sources.hpp"

#include <functional>
#include <memory>
#include <utility>

#include "runtime/draft/lookup_source.hpp"
#include "runtime/draft/prediction_source.hpp"

namespace redline::actors {
namespace {

using draft::graded_draft;
using draft::source;
using draft::standing;

constexpr std::uint8_t program_grade = 3;
constexpr std::uint8_t sure_grade = draft::grades_count - 1;

/// A source that the log itself provides. It depends only on where the log ends, so it has nothing to follow.
class log_source final : public draft::draft_source {
 public:
  using drafts = std::function<graded_draft(std::uint32_t tokens_max)>;
  log_source(standing s, drafts of) : standing_(s), drafts_(std::move(of)) {}

  [[nodiscard]] standing stands() const override { return standing_; }
  void append(std::span<const token>, bool) override {}
  void drop(std::uint32_t, std::uint32_t) override {}
  bool catch_up(std::uint32_t) override { return false; }
  [[nodiscard]] graded_draft look(std::span<const token> pending, std::uint32_t tokens_max) const override {
    if (!pending.empty()) return {};
    graded_draft out = drafts_(tokens_max);
    out.truncate(tokens_max);
    return out;
  }

 private:
  standing standing_;
  drafts drafts_;
};

graded_draft graded(source from, std::uint8_t grade, const std::vector<token>& tokens) {
  graded_draft out;
  out.add(from, grade, tokens);
  return out;
}

}  // namespace

void add_sources(draft::book& book, const token_log& log) {
  using draft::method;
  const draft::draft_options& how = log.spec().draft;
  const auto add = [&](standing s, log_source::drafts of) { book.add(std::make_unique<log_source>(s, std::move(of))); };
  if (log.is_program()) {
    add(standing::binding, [&log](auto) { return graded(source::program, sure_grade, log.span_draft()); });
  }
  if (!log.spec().known_text.empty()) {
    add(standing::binding, [&log](auto) { return graded(source::prediction, sure_grade, log.known_draft()); });
  }
  if (how.how == method::regular) return;
  if (how.how == method::mtp) return book.add_mtp();
  if (log.is_program()) {
    add(standing::form, [&log](auto) { return graded(source::program, program_grade, log.likely_draft()); });
  } else if (log.spec().rules && how.how != method::assisted) {
    add(standing::form, [&log](std::uint32_t most) { return log.likely_call(most); });
  }
  if (draft::reads_prediction(how.how) && !log.spec().prediction.empty()) {
    const source from = log.spec().is_from_format ? source::format : source::prediction;
    book.add(std::make_unique<draft::prediction_source>(log.spec().prediction, from));
  }
  book.add(std::make_unique<draft::lookup_source>(how.max_matching_ngram_size));
  if (draft::asks_mtp(how.how)) book.add_mtp();
}

}  // namespace redline::actors
