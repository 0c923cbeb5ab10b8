#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/commands/difference.hpp"
#include "actors/cli/commands/edit_flags.hpp"
#include "actors/cli/commands/edit_many.hpp"
#include "actors/cli/edit_task.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/phrase_hint.hpp"
#include "actors/cli/progress_line.hpp"
#include "actors/cli/review/file_choice.hpp"
#include "runtime/base/replacement_file.hpp"
#include "runtime/base/terminal_text.hpp"
#include "runtime/base/utf8.hpp"

namespace redline::actors::cli {
namespace {

std::string figures(const edit_outcome& e) {
  char line[256];
  std::snprintf(
      line, sizeof line,
      "%s: %u tokens in %.2f s (%.0f tokens/s), %u target passes, %u draft passes, %u of %u drafted tokens accepted "
      "(%.1f per pass)",
      e.method.c_str(), e.completion_tokens, e.seconds, e.tokens_per_second(), e.target_passes, e.draft_passes,
      e.accepted, e.drafted, e.accepted_per_pass());
  if (e.method != "copy") return line;
  const std::string copied = ", " + std::to_string(e.copied_forced) + " tokens copied without verification, " +
                             std::to_string(e.copied_verified) + " with";
  return line + copied + (e.refused_spans > 0 ? "; the model refused a span and wrote the whole file" : "");
}

int run(const edit_flags& f) {
  auto chosen = choose_files(f.files);
  if (!chosen) return report(chosen.error());
  const chosen_file& file = chosen->files.front();
  const std::string& before = file.bytes;
  const edit_task task{file.path, before, f.instruction};
  progress_line line(!f.json);
  auto began = std::chrono::steady_clock::now();
  const auto show = [&](const std::string& answer) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    char text[96];
    std::snprintf(text, sizeof text, "editing %zu of about %zu bytes, %.1f s", answer.size(), before.size(), seconds);
    line.show(text);
  };
  if (const auto editable = check_editable(task); !editable) return report(editable);
  const auto door =
      f.server.empty() ? model_door::of_own_server(f.models, f.method, 1) : model_door::of_server(f.server, f.api_key);
  if (!door) return report(door.error());
  began = std::chrono::steady_clock::now();
  auto got = edit_file(*door, task, f.method, show);
  line.clear();
  if (!got) {
    failure why = got.error();
    if (why.code == errc::context_length_exceeded)
      why.context = file.path + " is too long for the model: " + why.context;
    return report(why);
  }
  if (f.write && got->after != before) {
    auto place = file.place();
    if (!place) return report(place.error());
    if (auto replaced = replace_edited(std::move(*place), before, got->after); !replaced)
      return report(replaced.error());
  }
  if (f.json) {
    nlohmann::ordered_json out = {{"text", utf8::sanitize(got->after)},
                                  {"stats",
                                   {{"method", got->method},
                                    {"completion_tokens", got->completion_tokens},
                                    {"target_passes", got->target_passes},
                                    {"draft_passes", got->draft_passes},
                                    {"drafted", got->drafted},
                                    {"accepted", got->accepted},
                                    {"accepted_per_pass", got->accepted_per_pass()},
                                    {"seconds", got->seconds},
                                    {"tokens_per_second", got->tokens_per_second()},
                                    {"copied_forced", got->copied_forced},
                                    {"copied_verified", got->copied_verified},
                                    {"refused_spans", got->refused_spans}}}};
    if (!got->program.empty()) out["program"] = utf8::sanitize(got->program);
    print_text(out.dump() + "\n");
    return 0;
  }
  print_difference(file.path, before, got->after);
  if (got->after == before) std::cerr << phrase_hint_of(f.models.model, f.server, f.api_key);
  std::cerr << figures(*got) << "\n";
  if (f.write && got->after != before) std::cerr << "wrote " << shown_on_terminal(file.path) << "\n";
  return 0;
}

}  // namespace

void add_edit(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<edit_flags>();
  const command c(app, "edit", "Rewrite files according to an instruction, and show the difference");
  c.add("FILE", f->files, "The file to edit; given several files or a folder, each file is a separate edit")
      .existing_path();
  c.add("-i,--instruction", f->instruction, "What to change, in words").require();
  const option model = add_model_flags(c, f->models, false);
  add_chat_template_flag(c, f->models.chat_template);
  add_method_flags(c, f->method, true);
  const option server = c.add("--server", f->server, "Use a running server: http://HOST:PORT or https://HOST");
  c.add("--api-key", f->api_key, "The server's API key");
  const option json =
      c.add_flag("--json", f->json, "Print one JSON object with the new file; for several files, one object per line");
  c.add_flag("--write", f->write, "Replace the file, atomically");
  const option yes =
      c.add_flag("--yes", f->yes, "Like --write, for one file or several: accept every hunk without asking");
  c.add_flag("--staged", f->staged, "Edit the files below FILE or the current folder that have changes staged in git");
  c.add("--patch", f->patch,
        "Write a patch for 'git apply' to this file (- is standard output) instead of changing files")
      .any_file()
      .exclude(json);
  c.add_flag("--review", f->review, "Ask about each hunk; the default for several files on a terminal")
      .exclude(json)
      .exclude(yes);
  c.on_run(exit_code, [f, server, model] {
    if (const auto chosen = choose_model_or_server(model, f->models.model, server, f->server); !chosen)
      return report(chosen);
    if (f->files.empty() && !f->staged) {
      return report(failure{errc::invalid_argument, "expected a FILE to edit or --staged, found neither"});
    }
    if (f->server.empty() && f->models.model.empty()) {
      return report(failure{errc::invalid_argument, "expected --model FILE or --server URL, found neither"});
    }
    std::error_code ignored;
    const bool is_many = f->staged || f->files.size() > 1 || std::filesystem::is_directory(f->files.front(), ignored);
    if (!is_many && !f->yes && !f->review && f->patch.empty()) return run(*f);
    f->write = f->write || f->yes;
    return edit_many(*f);
  });
}

}  // namespace redline::actors::cli
