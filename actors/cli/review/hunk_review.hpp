#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/review/hunk.hpp"

namespace redline::actors::cli {

/// Asks a person about each hunk of each file, with the letters of `git add -p`.
class hunk_review {
 public:
  /// How it talks to the person.
  struct desk {
    std::function<void(const std::string&)> show;
    std::function<std::optional<std::string>()> read_line;  // nullopt: there are no more
    std::function<result<std::string>(const std::string& text)> edit;
    bool colour = false;
  };
  explicit hunk_review(desk at) : desk_(std::move(at)) {}

  /// Those that are taken, as they are to be. Nothing once the person has said that it is over.
  std::vector<hunk> choose(const std::string& path, const std::vector<hunk>& hunks);
  [[nodiscard]] bool is_over() const { return over_; }

 private:
  std::optional<hunk> edited(const hunk& h) const;

  desk desk_;
  bool over_ = false;
};

}  // namespace redline::actors::cli
