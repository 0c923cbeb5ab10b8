#include <iostream>
#include <nlohmann/json.hpp>

#include "actors/commands/command.hpp"
#include "runtime/copy/oracle.hpp"

namespace redline::actors::commands {
namespace {

struct flags {
  std::vector<std::string> olds;
  std::string last;  // the new file, or the program
  std::uint32_t span_min = 1;
  bool json = false;
};

result<std::vector<copy::document>> read_documents(const std::vector<std::string>& paths) {
  std::vector<copy::document> files;
  for (const auto& path : paths) {
    REDLINE_TRY_ASSIGN(auto bytes, read_whole(path));
    files.emplace_back(std::move(bytes));
  }
  if (files.size() > copy::program_shape::files_max) {
    return failure{errc::invalid_argument, "wanted at most " + std::to_string(copy::program_shape::files_max) + " files, found " +
                                               std::to_string(files.size())};
  }
  return files;
}

void write_bytes(const std::string& bytes) { std::cout.write(bytes.data(), static_cast<std::streamsize>(bytes.size())); }

/// A program's file may end with a line feed, as editors like it; the program itself does not.
result<copy::program> read_program(const std::string& path, const std::vector<copy::document>& files) {
  REDLINE_TRY_ASSIGN(auto bytes, read_whole(path));
  if (bytes.ends_with('\n')) bytes.pop_back();
  if (bytes.ends_with('\r')) bytes.pop_back();
  return copy::parse_program(bytes, copy::shape_of(files));
}

int run_oracle(const flags& f) {
  const auto files = read_documents(f.olds);
  if (!files) return report(files.error());
  auto after = read_whole(f.last);
  if (!after) return report(after.error());
  const copy::document wanted(std::move(*after));
  const auto program = copy::shortest_program(*files, wanted, {.span_min = f.span_min});
  std::cout << copy::print_program(program, files->size() > 1) << "\n";
  return 0;
}

int run_resolve(const flags& f) {
  const auto files = read_documents(f.olds);
  if (!files) return report(files.error());
  const auto program = read_program(f.last, *files);
  if (!program) return report(program.error());
  const auto bytes = copy::resolve(*program, *files);
  if (!bytes) return report(bytes.error());
  write_bytes(*bytes);
  return 0;
}

int run_check(const flags& f) {
  const auto files = read_documents(f.olds);
  if (!files) return report(files.error());
  const auto program = read_program(f.last, *files);
  const auto bytes = program ? copy::resolve(*program, *files) : result<std::string>(program.error());
  if (!bytes) {
    if (f.json) std::cout << nlohmann::ordered_json{{"valid", false}, {"why", bytes.error().context}}.dump() << "\n";
    return report(bytes.error());
  }
  std::size_t copies = 0;
  std::size_t copied_bytes = 0;
  for (const auto& op : *program) {
    const auto* copy = std::get_if<copy::copy_op>(&op);
    if (copy == nullptr) continue;
    ++copies;
    copied_bytes += (*files)[copy->file - 1].slice(copy->of, copy->first, copy->last).size();
  }
  if (f.json) {
    std::cout << nlohmann::ordered_json{{"valid", true}, {"copies", copies}, {"texts", program->size() - copies},
                                        {"bytes", bytes->size()}, {"copied_bytes", copied_bytes}}.dump()
              << "\n";
  } else {
    std::cout << "valid: " << copies << " copies, " << program->size() - copies << " texts; " << copied_bytes << " of "
              << bytes->size() << " bytes are copied\n";
  }
  return 0;
}

}  // namespace

void add_copy(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<flags>();
  auto* c = app.add_subcommand("copy", "Edit programs: what to copy from the old file and what to write");
  c->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, const char* last, const char* last_help) {
    auto* sub = c->add_subcommand(name, help);
    // Several old files and one more: the last of the list.
    sub->add_option("FILES", f->olds, std::string("The old file (with several, copies say file=\"1\", file=\"2\", ...), then ") + last + ": " + last_help)
        ->required()->expected(2, -1);
    return sub;
  };
  auto* oracle = add("oracle", "Print the shortest program that makes NEW out of OLD", "NEW", "the new file");
  oracle->add_option("--span-min", f->span_min, "Lines that a copy has at least")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  auto* resolve = add("resolve", "Print the new file's bytes", "PROGRAM", "a file with the program, or -");
  auto* check = add("check", "Say whether a program is valid for these files", "PROGRAM", "a file with the program, or -");
  check->add_flag("--json", f->json, "Print one JSON object");
  const auto on = [f, &exit_code](CLI::App* sub, int (*run)(const flags&)) {
    sub->callback([f, run, &exit_code] {
      f->last = f->olds.back();
      f->olds.pop_back();
      exit_code = run(*f);
    });
  };
  on(oracle, run_oracle);
  on(resolve, run_resolve);
  on(check, run_check);
}

}  // namespace redline::actors::commands
