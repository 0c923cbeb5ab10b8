#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/review/hunk.hpp"

namespace redline::actors::cli {

/// Asks the user about each hunk of each file, with the letters of `git add -p`.
class hunk_review {
 public:
  /// The input and output for the user.
  struct desk {
    std::function<void(const std::string&)> show;
    std::function<std::optional<std::string>()> read_line;  // nullopt at the end of the input
    std::function<result<std::string>(const std::string& text)> edit;
    bool colour = false;
  };
  explicit hunk_review(desk at) : desk_(std::move(at)) {}

  /// The hunks that the user takes, perhaps edited. Empty once the user has ended the review.
  std::vector<hunk> choose(const std::string& path, const std::vector<hunk>& hunks);
  [[nodiscard]] bool is_over() const { return over_; }

 private:
  std::optional<hunk> edited(const hunk& h) const;

  desk desk_;
  bool over_ = false;
};

}  // namespace redline::actors::cli
