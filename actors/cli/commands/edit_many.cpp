#include "actors/cli/commands/edit_many.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/difference.hpp"
#include "actors/cli/edit_task.hpp"
#include "actors/cli/phrase_hint.hpp"
#include "actors/cli/progress_line.hpp"
#include "actors/cli/review/file_choice.hpp"
#include "actors/cli/review/hunk_review.hpp"
#include "actors/cli/review/text_editor.hpp"
#include "runtime/base/replacement_file.hpp"
#include "runtime/base/terminal_text.hpp"
#include "runtime/base/utf8.hpp"

namespace redline::actors::cli {
namespace {

constexpr std::size_t left_out_shown_max = 20;

bool is_on_terminal() { return isatty(STDIN_FILENO) != 0 && is_output_terminal(); }

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

void show_left_out(const file_choice& choice) {
  const std::size_t shown = std::min(choice.left_out.size(), left_out_shown_max);
  for (std::size_t i = 0; i < shown; ++i)
    std::cerr << "redline: left out " << shown_on_terminal(choice.left_out[i]) << "\n";
  if (shown < choice.left_out.size()) {
    std::cerr << "redline: left out " << choice.left_out.size() - shown << " more files\n";
  }
}

/// The answers to all tasks, with the ways to output them.
class outcome_of_all {
 public:
  /// files: the file of each task, for writing.
  outcome_of_all(const edit_flags& f, const std::vector<edit_task>& tasks, const std::vector<chosen_file>& files,
                 std::vector<result<edit_outcome>> edits)
      : flags_(f), tasks_(tasks), files_(files), edits_(std::move(edits)) {}

  int finish() {
    if (flags_.json)
      print_json();
    else if (flags_.review || (flags_.patch.empty() && !flags_.write && is_on_terminal()))
      ask();
    else
      take_all();
    return exit_code_;
  }

 private:
  void complain(const std::string& path, const failure& why) {
    const int code = report(failure{why.code, path + ": " + (why.context.empty() ? why.describe() : why.context)});
    if (exit_code_ == 0) exit_code_ = code;
  }

  /// Calls `look` with the index of each edit that succeeded, and the edit.
  template<class Look>
  void for_each_edit(const Look& look) {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (edits_[i])
        look(i, tasks_[i], *edits_[i]);
      else
        complain(tasks_[i].path, edits_[i].error());
    }
  }

  void write(std::size_t number, const std::string& after) {
    const edit_task& task = tasks_[number];
    if (after == task.before) return;
    auto place = files_[number].place();
    const auto replaced =
        place ? replace_edited(std::move(*place), task.before, after) : result<void>(std::move(place).error());
    if (!replaced) {
      const int code = report(replaced.error());
      if (exit_code_ == 0) exit_code_ = code;
      return;
    }
    std::cerr << "wrote " << shown_on_terminal(task.path) << "\n";
    ++written_;
  }

  void put_patch(const std::string& patch) {
    if (flags_.patch.empty() || flags_.patch == "-")
      std::cout << patch;
    else if (const auto written = write_whole(flags_.patch, patch); !written)
      exit_code_ = report(written.error());
    else
      std::cerr << "wrote " << flags_.patch << "\n";
  }

  void take_all() {
    const bool colour = (flags_.patch.empty() || flags_.patch == "-") && is_output_terminal();
    std::string patch;
    for_each_edit([&](std::size_t number, const edit_task& task, const edit_outcome& e) {
      patch += patch_of(path_in_patch(task.path), hunks_of(task.before, e.after), colour);
      if (flags_.write) write(number, e.after);
    });
    put_patch(patch);
    if (patch.empty()) std::cerr << "no change\n";
    if (patch.empty() && exit_code_ == 0) {
      std::cerr << phrase_hint_of(flags_.models.model, flags_.server, flags_.api_key);
    }
    if (!patch.empty() && flags_.patch.empty() && !flags_.write) {
      std::cerr << "no file was changed; --yes accepts every hunk, --review asks about each one\n";
    }
  }

  void ask() {
    hunk_review review({.show = [](const std::string& text) { std::cout << text << std::flush; },
                        .read_line = []() -> std::optional<std::string> {
                          std::string line;
                          if (!std::getline(std::cin, line)) return std::nullopt;
                          return line;
                        },
                        .edit = edit_text,
                        .colour = true});
    std::string patch;
    for_each_edit([&](std::size_t number, const edit_task& task, const edit_outcome& e) {
      const auto hunks = hunks_of(task.before, e.after);
      if (hunks.empty() && !review.is_over()) std::cerr << shown_on_terminal(task.path) << ": no change\n";
      const auto taken = review.choose(task.path, hunks);
      if (taken.empty()) return;
      if (flags_.patch.empty())
        write(number, with_hunks(task.before, taken));
      else
        patch += patch_of(path_in_patch(task.path), taken);
    });
    if (!flags_.patch.empty()) put_patch(patch);
  }

  void print_json() {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      nlohmann::ordered_json out = {{"path", utf8::sanitize(tasks_[i].path)}};
      if (edits_[i]) {
        const edit_outcome& e = *edits_[i];
        out["text"] = utf8::sanitize(e.after);
        out["stats"] = {{"method", e.method},
                        {"completion_tokens", e.completion_tokens},
                        {"target_passes", e.target_passes},
                        {"draft_passes", e.draft_passes},
                        {"drafted", e.drafted},
                        {"accepted", e.accepted},
                        {"seconds", e.seconds}};
        if (flags_.write) write(i, e.after);
      } else {
        const failure& why = edits_[i].error();
        out["error"] = utf8::sanitize(why.context.empty() ? why.describe() : why.context);
        if (exit_code_ == 0) exit_code_ = exit_failed;
      }
      print_text(out.dump() + "\n");
    }
  }

  const edit_flags& flags_;
  const std::vector<edit_task>& tasks_;
  const std::vector<chosen_file>& files_;
  std::vector<result<edit_outcome>> edits_;
  int exit_code_ = 0;
  std::size_t written_ = 0;
};

void show_figures(const std::vector<result<edit_outcome>>& edits, double seconds) {
  std::uint64_t tokens = 0;
  std::size_t done = 0;
  for (const auto& e : edits) {
    if (!e) continue;
    tokens += e->completion_tokens;
    ++done;
  }
  char line[160];
  std::snprintf(line, sizeof line, "%zu of %zu files: %llu tokens in %.2f s (%.0f tokens/s)", done, edits.size(),
                static_cast<unsigned long long>(tokens), seconds,
                seconds > 0 ? static_cast<double>(tokens) / seconds : 0);
  std::cerr << line << "\n";
}

}  // namespace

int edit_many(const edit_flags& f) {
  if (f.review && !is_on_terminal()) {
    return report(failure{errc::invalid_argument,
                          "--review: expected a terminal, found none; --yes accepts every hunk without one"});
  }
  auto choice = f.staged ? choose_staged_files(f.files) : choose_files(f.files);
  if (!choice) return report(choice.error());
  show_left_out(*choice);
  if (choice->files.empty()) {
    return report(failure{errc::invalid_argument,
                          f.staged ? "expected text files with staged changes, found none; stage some with 'git add'"
                                   : "expected text files to edit, found none in " + f.files.front()});
  }
  std::vector<edit_task> tasks;
  std::size_t all_bytes = 0;
  for (chosen_file& file : choice->files) {
    all_bytes += file.bytes.size();
    tasks.push_back({file.path, std::move(file.bytes), f.instruction});
  }
  progress_line line(!f.json);
  auto began = std::chrono::steady_clock::now();
  const auto show = [&](std::size_t bytes) {
    char text[128];
    std::snprintf(text, sizeof text, "editing %zu files, %zu of about %zu bytes, %.1f s", tasks.size(), bytes,
                  all_bytes, seconds_since(began));
    line.show(text);
  };
  const std::size_t at_once = std::min(tasks.size(), edits_at_once_max);
  const auto door = f.server.empty() ? model_door::of_own_server(f.models, f.method, at_once)
                                     : model_door::of_server(f.server, f.api_key);
  if (!door) return report(door.error());
  began = std::chrono::steady_clock::now();
  auto edits = edit_each(*door, tasks, f.method, show);
  line.clear();
  if (!f.json) show_figures(edits, seconds_since(began));
  return outcome_of_all(f, tasks, choice->files, std::move(edits)).finish();
}

}  // namespace redline::actors::cli
