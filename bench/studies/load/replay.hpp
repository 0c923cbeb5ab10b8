#pragma once

#include <span>
#include <string>

#include "bench/studies/common/edit_corpus.hpp"
#include "runtime/base/result.hpp"

namespace redline::studies {

/// What `redline serve --script` is to answer to these edits: the known results, each to the message that asks for it.
[[nodiscard]] std::string script_of(std::span<const known_edit> edits);

/// The script in a file of its own in a folder that no other user can enter; both are removed with this object.
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
