#include <iostream>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "runtime/copy/oracle.hpp"
#include "runtime/grammar/token_trie.hpp"

namespace redline::actors::cli {
namespace {

struct copy_flags {
  std::vector<std::string> files;  // the old files
  std::string last;                // the new file, or the program
  std::string spans = "lines";
  std::string tokenizer;
  bool anchors = false;
  std::uint32_t span_min = 1;
  bool json = false;
};

using index_ptr = std::shared_ptr<const grammar::token_trie>;

/// The index of --tokenizer; null if spans consist of lines.
result<index_ptr> trie_of(const copy_flags& f) {
  if (f.spans == "lines") return index_ptr{};
  if (f.tokenizer.empty()) return failure{errc::invalid_argument, "--spans " + f.spans + " needs --tokenizer"};
  REDLINE_TRY_ASSIGN(const auto file, gguf::gguf_file::open(f.tokenizer));
  REDLINE_TRY_ASSIGN(auto tokenizer, text::tokenizer::from_file(*file));
  return grammar::token_trie::make(std::move(tokenizer));
}

result<copy::document> document_of(std::string bytes, const index_ptr& trie) {
  if (!trie) return copy::document(std::move(bytes));
  if (!trie->can_tokenize(bytes)) {
    return failure{errc::unsupported_format, "a file contains bytes for which the vocabulary has no token"};
  }
  std::vector<std::uint32_t> ends;
  std::uint32_t end = 0;
  for (const token t : trie->spell(bytes))
    ends.push_back(end += static_cast<std::uint32_t>(trie->tokenizer().piece(t).size()));
  return copy::document(std::move(bytes), std::move(ends));
}

result<std::vector<copy::document>> read_documents(const copy_flags& f, const index_ptr& trie) {
  std::vector<copy::document> files;
  for (const auto& path : f.files) {
    REDLINE_TRY_ASSIGN(auto bytes, read_whole(path));
    REDLINE_TRY_ASSIGN(auto file, document_of(std::move(bytes), trie));
    files.push_back(std::move(file));
  }
  if (files.size() > copy::program_shape::files_max) {
    return failure{errc::invalid_argument, "expected at most " + std::to_string(copy::program_shape::files_max) +
                                               " files, found " + std::to_string(files.size())};
  }
  return files;
}

/// A program and its files.
struct loaded {
  std::vector<copy::document> files;
  copy::program program;
  std::vector<copy::anchor_pair> anchors;  // one per copy, with --anchors
};

/// Drops the line feed that editors add at the end of a program's file; the program has none.
result<loaded> read_program(const copy_flags& f) {
  loaded out;
  REDLINE_TRY_ASSIGN(const auto trie, trie_of(f));
  REDLINE_TRY_ASSIGN(out.files, read_documents(f, trie));
  REDLINE_TRY_ASSIGN(auto bytes, read_whole(f.last));
  if (bytes.ends_with('\n')) bytes.pop_back();
  if (bytes.ends_with('\r')) bytes.pop_back();
  auto shape = copy::shape_of(out.files, f.spans != "lines");
  shape.line_spans = f.spans != "tokens";
  shape.anchors = f.anchors;
  REDLINE_TRY_ASSIGN(out.program, copy::parse_program(bytes, shape, &out.anchors));
  return out;
}

result<void> print_oracle(const copy_flags& f) {
  if (f.spans == "both")
    return failure{errc::invalid_argument, "--spans both does not work with 'oracle': expected lines or tokens"};
  REDLINE_TRY_ASSIGN(const auto trie, trie_of(f));
  REDLINE_TRY_ASSIGN(const auto files, read_documents(f, trie));
  REDLINE_TRY_ASSIGN(auto after, read_whole(f.last));
  REDLINE_TRY_ASSIGN(const auto wanted, document_of(std::move(after), trie));
  const auto of = f.spans == "tokens" ? copy::unit::tokens : copy::unit::lines;
  const auto program = copy::shortest_program(files, wanted, {.of = of, .span_min = f.span_min});
  print_text((f.anchors ? copy::print_anchored(program, files) : copy::print_program(program, files.size() > 1)) +
             "\n");
  return {};
}

int run_oracle(const copy_flags& f) { return report(print_oracle(f)); }

int run_resolve(const copy_flags& f) {
  const auto read = read_program(f);
  if (!read) return report(read.error());
  const auto bytes = copy::resolve(read->program, read->files);
  if (!bytes) return report(bytes.error());
  print_text(*bytes);
  return 0;
}

int run_check(const copy_flags& f) {
  const auto read = read_program(f);
  const auto bytes = read ? copy::resolve(read->program, read->files) : result<std::string>(read.error());
  if (!bytes) {
    if (f.json) std::cout << nlohmann::ordered_json{{"valid", false}, {"why", bytes.error().context}}.dump() << "\n";
    return report(bytes.error());
  }
  std::size_t copies = 0, copied_bytes = 0, wrong_anchors = 0;
  for (const auto& op : read->program) {
    const auto* copy = std::get_if<copy::copy_op>(&op);
    if (copy == nullptr) continue;
    if (f.anchors && read->anchors[copies] != copy::anchors_of(*copy, read->files)) ++wrong_anchors;
    ++copies;
    copied_bytes += read->files[copy->file - 1].slice(copy->of, copy->first, copy->last).size();
  }
  const std::size_t texts = read->program.size() - copies;
  if (f.json) {
    nlohmann::ordered_json out = {{"valid", true},
                                  {"copies", copies},
                                  {"texts", texts},
                                  {"bytes", bytes->size()},
                                  {"copied_bytes", copied_bytes}};
    if (f.anchors) out["wrong_anchors"] = wrong_anchors;
    std::cout << out.dump() << "\n";
  } else {
    std::cout << "valid: " << copies << " copies, " << texts << " texts; " << copied_bytes << " of " << bytes->size()
              << " bytes are copied"
              << (wrong_anchors > 0 ? "; " + std::to_string(wrong_anchors) + " copies have anchors of other lines"
                                    : std::string())
              << "\n";
  }
  return 0;
}

}  // namespace

void add_copy(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<copy_flags>();
  const command c(app, "copy", "Work with edit programs, which list what to copy from the old file and what to write");
  c.require_command();
  const auto add = [&](const char* name, const char* help, const char* last, const char* last_help,
                       int (*run)(const copy_flags&)) {
    const command sub(c, name, help);
    // One or more old files, followed by the last argument.
    sub.add("FILES", f->files,
            std::string("The old file (with several, copies say file=\"1\", file=\"2\", ...), then ") + last + ": " +
                last_help)
        .require()
        .any_file()
        .count(2, -1);
    sub.add("--spans", f->spans, "The unit in which spans are counted").one_of({"lines", "tokens", "both"});
    sub.add("--tokenizer", f->tokenizer, "A model file whose tokenizer counts spans of tokens").existing_file();
    sub.add_flag("--anchors", f->anchors, "Copies of lines also quote the beginning of their first and last line");
    sub.on_run(exit_code, [f, run] {
      f->last = f->files.back();
      f->files.pop_back();
      return run(*f);
    });
    return sub;
  };
  const command oracle =
      add("oracle", "Print the shortest program that makes NEW out of OLD", "NEW", "the new file", run_oracle);
  oracle.add("--span-min", f->span_min, "Minimum number of lines or tokens of a copy").range(1, 1 << 20);
  add("resolve", "Print the new file's bytes", "PROGRAM", "a file with the program, or -", run_resolve);
  const command check = add("check", "Say whether a program is valid for these files", "PROGRAM",
                            "a file with the program, or -", run_check);
  check.add_flag("--json", f->json, "Print one JSON object");
}

}  // namespace redline::actors::cli
