// redline man: prints manual pages, generated from the help texts.

#include <filesystem>
#include <iostream>
#include <memory>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/help/command_text.hpp"
#include "actors/cli/help/man_page.hpp"
#include "actors/cli/help/suggestion.hpp"

namespace redline::actors::cli {
namespace {

struct man_flags {
  std::string page;
  std::string folder;
};

result<void> write_all(const command_text& program, const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return failure{errc::io_error, folder + ": " + failed.message()};
  const std::string begin = folder + "/" + program.name;
  REDLINE_TRY(write_whole(begin + ".1", man_page(program)));
  for (const command_text& c : program.commands)
    REDLINE_TRY(write_whole(begin + "-" + c.name + ".1", man_page(program, c)));
  return {};
}

result<void> run(const command_text& program, const man_flags& f) {
  if (!f.folder.empty()) return write_all(program, f.folder);
  if (f.page.empty()) {
    std::cout << man_page(program);
    return {};
  }
  const command_text* c = program.find(f.page);
  if (c == nullptr) {
    std::vector<std::string> names;
    for (const command_text& one : program.commands) names.push_back(one.name);
    const auto meant = suggest(f.page, names);
    return failure{errc::invalid_argument, "expected a command, found '" + f.page + "'" +
                                               (meant ? "; did you mean '" + *meant + "'?" : ";") +
                                               " 'redline --help' lists them"};
  }
  std::cout << man_page(program, *c);
  return {};
}

}  // namespace

void add_man(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<man_flags>();
  const command c(app, "man", "Print a manual page, for 'man -l -'");
  c.add("COMMAND", f->page, "The command to describe; the program if not given");
  c.add("--write", f->folder, "Write the pages of the program and all commands to this folder instead").any_folder();
  c.on_run(exit_code, [f, &app] { return report(run(describe(app), *f)); });
}

}  // namespace redline::actors::cli
