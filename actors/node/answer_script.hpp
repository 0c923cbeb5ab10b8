#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/serving/output_rules.hpp"
#include "runtime/sampling/token_chooser.hpp"
#include "runtime/text/tokenizer.hpp"

namespace redline::actors {

/// Scripted answers instead of the model's, for tests and measurements of a whole server: every pass is computed, and
/// only the choice of tokens is not the model's. So clients can be tried with answers that the model would not give.
class answer_script final : public sampling::token_chooser {
 public:
  /// path: a JSON array of {"when": [TEXT, ...], "say": TEXT}. The first entry whose texts are all in the prompt gives
  /// the answer; without one the model does.
  static result<std::shared_ptr<answer_script>> load(const std::string& path);

  /// Begins an answer with this prompt. Decisions of its grammar, if any, become part of the answer. Fails where the
  /// grammar forbids what the script says.
  result<void> begin(session_id session, std::span<const token> prompt, const output_rules* rules,
                     const text::tokenizer& tokenizer);

  [[nodiscard]] std::optional<token> choose(const row& at) const override;

 private:
  struct entry {
    std::vector<std::string> when;
    std::string say;
  };
  explicit answer_script(std::vector<entry> entries) : entries_(std::move(entries)) {}

  static constexpr std::size_t answers_max = 1024;  // the oldest are forgotten

  std::vector<entry> entries_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::vector<token>> answers_;
  std::vector<std::uint64_t> order_;
};

}  // namespace redline::actors
