#include "actors/cli/review/file_choice.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "actors/cli/review/child_output.hpp"
#include "runtime/base/utf8.hpp"
#include "runtime/files/replacement_file.hpp"

namespace redline::actors::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t listed_files_max = 100'000;  // of a folder, before it is looked what they are

std::string mib(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return failure{errc::file_unreadable, "cannot read " + path};
  std::string out(edited_file_bytes_max + 1, '\0');
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<std::size_t>(in.gcount()));
  return out;
}

/// Why these bytes are not edited; nullopt when they are.
std::optional<std::string> complaint_of(const std::string& bytes) {
  if (bytes.size() > edited_file_bytes_max) return "larger than " + mib(edited_file_bytes_max);
  if (bytes.find('\0') != std::string::npos || utf8::valid_prefix_bytes(bytes) != bytes.size())
    return "no text in UTF-8";
  return std::nullopt;
}

std::vector<std::string> split_at_zero(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, '\0');) out.push_back(one);
  return out;
}

/// A repository that git then must be able to read: otherwise what it ignores would be edited.
bool is_in_repository(const fs::path& folder) {
  std::error_code ignored;
  for (fs::path at = fs::canonical(folder, ignored); !at.empty(); at = at.parent_path()) {
    if (fs::exists(at / ".git", ignored)) return true;
    if (at == at.root_path()) break;
  }
  return false;
}

result<std::vector<std::string>> ask_git(const std::vector<std::string>& words) {
  std::vector<std::string> all{"git"};
  all.insert(all.end(), words.begin(), words.end());
  REDLINE_TRY_ASSIGN(const auto said, run_for_output(all));
  if (said.exit_code != 0) {
    return failure{errc::io_error, "git could not tell the files: " + said.error.substr(0, said.error.find('\n'))};
  }
  return split_at_zero(said.out);
}

result<std::vector<std::string>> list_folder(const std::string& folder) {
  std::vector<std::string> out;
  if (is_in_repository(folder)) {
    REDLINE_TRY_ASSIGN(const auto names,
                       ask_git({"-C", folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard"}));
    for (const std::string& name : names) out.push_back((fs::path(folder) / name).lexically_normal().string());
  } else {
    std::error_code error;
    fs::recursive_directory_iterator it(folder, error);
    for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
      const bool is_hidden = it->path().filename().string().starts_with('.');
      std::error_code ignored;
      if (is_hidden && it->is_directory(ignored)) it.disable_recursion_pending();
      if (!is_hidden && fs::is_regular_file(it->symlink_status(ignored)))
        out.push_back(it->path().lexically_normal().string());
      if (out.size() > listed_files_max) break;
    }
    if (error) return failure{errc::file_unreadable, folder + ": " + error.message()};
  }
  if (out.size() > listed_files_max) {
    return failure{errc::invalid_argument,
                   folder + " has more than " + std::to_string(listed_files_max) + " files; name a smaller folder"};
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Gathers files and keeps to the limits.
class gatherer {
 public:
  /// A file of a folder: what cannot be edited is left out.
  result<void> add_found(const std::string& path) {
    std::error_code error;
    if (!fs::is_regular_file(fs::symlink_status(path, error)) || fs::file_size(path, error) == 0) return {};
    auto bytes = read_file(path);
    const auto why = bytes ? complaint_of(*bytes) : std::optional(std::string("cannot be read"));
    if (!why) return add(path, std::move(*bytes));
    choice_.left_out.push_back(path + ": " + *why);
    return {};
  }
  /// A file that was asked for.
  result<void> add_named(const std::string& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error))
      return failure{errc::invalid_argument, path + ": expected a file or a folder"};
    REDLINE_TRY_ASSIGN(auto bytes, read_file(path));
    if (const auto why = complaint_of(bytes))
      return failure{errc::invalid_argument, path + " cannot be edited: " + *why};
    return add(path, std::move(bytes));
  }
  file_choice take() { return std::move(choice_); }

 private:
  result<void> add(const std::string& path, std::string bytes) {
    std::error_code error;
    if (!known_.insert(fs::canonical(path, error).string()).second) return {};
    bytes_ += bytes.size();
    if (choice_.files.size() == edited_files_max || bytes_ > edited_bytes_max) {
      return failure{errc::invalid_argument, "expected at most " + std::to_string(edited_files_max) +
                                                 " files of together " + mib(edited_bytes_max) +
                                                 ", found more, such as " + path +
                                                 "; name fewer files or a smaller folder"};
    }
    choice_.files.push_back({path, std::move(bytes)});
    return {};
  }

  file_choice choice_;
  std::set<std::string> known_;
  std::size_t bytes_ = 0;
};

}  // namespace

result<file_choice> choose_files(const std::vector<std::string>& paths) {
  gatherer all;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      REDLINE_TRY(all.add_named(path));
      continue;
    }
    REDLINE_TRY_ASSIGN(const auto names, list_folder(path));
    for (const std::string& name : names) REDLINE_TRY(all.add_found(name));
  }
  return all.take();
}

result<file_choice> choose_staged_files(const std::vector<std::string>& paths) {
  std::vector<std::string> words{"diff", "--cached", "--name-only", "--relative", "-z", "--diff-filter=ACMR", "--"};
  words.insert(words.end(), paths.begin(), paths.end());
  REDLINE_TRY_ASSIGN(const auto names, ask_git(words));
  gatherer all;
  for (const std::string& name : names) REDLINE_TRY(all.add_found(name));
  return all.take();
}

result<void> replace_edited(const std::string& named, const std::string& before, const std::string& bytes) {
  std::error_code error;
  const std::string path = fs::canonical(named, error).string();
  if (error) return failure{errc::io_error, named + ": " + error.message()};
  std::ifstream in(path, std::ios::binary);
  if (!in) return failure{errc::file_unreadable, "cannot read " + path};
  std::ostringstream now;
  now << in.rdbuf();
  if (now.str() != before)
    return failure{errc::io_error, named + " was changed by somebody else meanwhile; it is left as it is"};
  return replace_file(path, bytes);
}

}  // namespace redline::actors::cli
