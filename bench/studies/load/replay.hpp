#pragma once

#include <span>
#include <string>

#include "bench/studies/common/edit_corpus.hpp"
#include "runtime/base/result.hpp"

namespace redline::studies {

/// A script for `redline serve --script` with the known results of these edits, each for the message that requests it.
[[nodiscard]] std::string script_of(std::span<const known_edit> edits);

/// The script in a file in a folder that only this user can enter; both are removed with this object.
class script_file {
 public:
  static result<script_file> write(std::span<const known_edit> edits);
  script_file(script_file&& other) noexcept : folder_(std::move(other.folder_)) { other.folder_.clear(); }
  script_file& operator=(script_file&&) = delete;
  ~script_file();

  [[nodiscard]] std::string path() const { return folder_ + "/script.json"; }

 private:
  explicit script_file(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

}  // namespace redline::studies
