#include "actors/cli/review/file_choice.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "actors/cli/review/child_output.hpp"
#include "runtime/text/file_form.hpp"

namespace redline::actors::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t listed_files_max = 100'000;  // files per folder, before their contents are checked

std::string mib(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

/// The reason why these bytes are not edited; nullopt if they are.
std::optional<std::string> complaint_of(const std::string& bytes) {
  if (bytes.size() > edited_file_bytes_max) return "larger than " + mib(edited_file_bytes_max);
  return text::text_complaint(bytes);
}

std::vector<std::string> split_at_zero(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, '\0');) out.push_back(one);
  return out;
}

/// True in a repository. Git must then be able to read it, or ignored files would be edited.
bool is_in_repository(const fs::path& folder) {
  std::error_code ignored;
  for (fs::path at = fs::canonical(folder, ignored); !at.empty(); at = at.parent_path()) {
    if (fs::exists(at / ".git", ignored)) return true;
    if (at == at.root_path()) break;
  }
  return false;
}

/// Anyone may have made the repository, so no program that it configures is run, be it to watch files, as a hook, to
/// fetch missing objects, or to show differences.
result<std::vector<std::string>> ask_git(const std::vector<std::string>& words) {
  std::vector<std::string> all{
      "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager", "--no-optional-locks"};
  all.insert(all.end(), words.begin(), words.end());
  REDLINE_TRY_ASSIGN(const auto said, run_for_output(all, {"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1"}));
  if (said.exit_code != 0) {
    return failure{errc::io_error, "git could not list the files: " + said.error.substr(0, said.error.find('\n'))};
  }
  return split_at_zero(said.out);
}

/// The paths of the folder's files.
result<std::vector<std::string>> list_folder(const std::string& folder) {
  std::vector<std::string> out;
  if (is_in_repository(folder)) {
    REDLINE_TRY_ASSIGN(out, ask_git({"-C", folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard"}));
  } else {
    std::error_code error;
    fs::recursive_directory_iterator it(folder, error);
    for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
      const bool is_hidden = it->path().filename().string().starts_with('.');
      std::error_code ignored;
      if (is_hidden && it->is_directory(ignored)) it.disable_recursion_pending();
      if (!is_hidden && fs::is_regular_file(it->symlink_status(ignored)))
        out.push_back(it->path().lexically_relative(folder).string());
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

/// Collects files and enforces the limits.
class gatherer {
 public:
  /// Adds a file of a folder. One that cannot be edited is left out.
  result<void> add_found(const std::string& folder, const std::string& relative) {
    chosen_file file{(fs::path(folder) / relative).lexically_normal().string(), {}, folder, relative};
    const auto leave_out = [&](const std::string& why) {
      choice_.left_out.push_back(file.path + ": " + why);
      return result<void>();
    };
    const auto place = file.place();
    if (!place && place.error().code != errc::invalid_argument) return {};  // git lists deleted files too
    if (!place) return leave_out("it is reached by a symbolic link, or outside of " + folder);
    struct stat info {};
    const bool is_there = ::fstatat(place->folder(), place->name().c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (!is_there || !S_ISREG(info.st_mode) || info.st_size == 0) return {};
    auto found = place->read(edited_file_bytes_max + 1);
    const auto why = found ? complaint_of(found->bytes) : std::optional(std::string("cannot be read"));
    if (why) return leave_out(*why);
    return add(std::move(file), std::move(*found));
  }
  /// Adds a file that the user named.
  result<void> add_named(const std::string& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error))
      return failure{errc::invalid_argument, path + ": expected a file or a folder"};
    chosen_file file{path, {}, {}, {}};
    REDLINE_TRY_ASSIGN(const auto place, file.place());
    REDLINE_TRY_ASSIGN(auto found, place.read(edited_file_bytes_max + 1));
    if (const auto why = complaint_of(found.bytes))
      return failure{errc::invalid_argument, path + " cannot be edited: it is " + *why};
    return add(std::move(file), std::move(found));
  }
  file_choice take() { return std::move(choice_); }

 private:
  result<void> add(chosen_file file, folder_entry::content found) {
    if (!known_.insert(found.identity).second) return {};
    bytes_ += found.bytes.size();
    if (choice_.files.size() == edited_files_max || bytes_ > edited_bytes_max) {
      return failure{errc::invalid_argument, "expected at most " + std::to_string(edited_files_max) +
                                                 " files with a total of " + mib(edited_bytes_max) +
                                                 ", found more, such as " + file.path +
                                                 "; name fewer files or a smaller folder"};
    }
    file.bytes = std::move(found.bytes);
    choice_.files.push_back(std::move(file));
    return {};
  }

  file_choice choice_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> known_;
  std::size_t bytes_ = 0;
};

}  // namespace

result<folder_entry> chosen_file::place() const {
  return folder.empty() ? folder_entry::of_file(path) : folder_entry::beneath(folder, relative);
}

result<file_choice> choose_files(const std::vector<std::string>& paths) {
  gatherer all;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      REDLINE_TRY(all.add_named(path));
      continue;
    }
    REDLINE_TRY_ASSIGN(const auto names, list_folder(path));
    for (const std::string& name : names) REDLINE_TRY(all.add_found(path, name));
  }
  return all.take();
}

result<file_choice> choose_staged_files(const std::vector<std::string>& paths) {
  std::vector<std::string> words{
      "diff", "--cached",           "--name-only", "--no-ext-diff", "--no-textconv", "--relative",
      "-z",   "--diff-filter=ACMR", "--"};
  words.insert(words.end(), paths.begin(), paths.end());
  REDLINE_TRY_ASSIGN(const auto names, ask_git(words));
  gatherer all;
  for (const std::string& name : names) REDLINE_TRY(all.add_found(".", name));
  return all.take();
}

}  // namespace redline::actors::cli
