#include <iostream>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "runtime/gguf/gguf_file.hpp"
#include "runtime/text/tokenizer.hpp"

namespace redline::actors::cli {
namespace {

result<std::shared_ptr<const text::tokenizer>> open_tokenizer(const std::string& path) {
  REDLINE_TRY_ASSIGN(const auto file, gguf::gguf_file::open(path));
  return text::tokenizer::from_file(*file);
}

struct tokenize_flags {
  std::string model;
  bool json = false;
  bool special = false;
};

int tokenize(const tokenize_flags& f) {
  const auto tokenizer = open_tokenizer(f.model);
  if (!tokenizer) return report(tokenizer.error());
  const auto input = read_whole("-");
  if (!input) return report(input.error());
  const auto tokens = (*tokenizer)->encode(*input, {.parse_special = f.special});
  if (f.json) {
    std::cout << nlohmann::json(tokens).dump() << "\n";
    return 0;
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) std::cout << (i == 0 ? "" : " ") << tokens[i];
  std::cout << "\n";
  return 0;
}

/// Parses ids from a JSON array, or from numbers separated by whitespace or commas.
result<std::vector<token>> parse_ids(const std::string& input) {
  std::vector<token> ids;
  std::string number;
  for (const char c : input + " ") {
    if (c >= '0' && c <= '9') {
      number += c;
      continue;
    }
    if (std::string_view(" \t\r\n,[]").find(c) == std::string_view::npos) {
      return failure{errc::invalid_argument, std::string("expected token ids, found '") + c + "'"};
    }
    if (number.size() > 9)
      return failure{errc::invalid_argument, "expected token ids of at most 9 digits, found " + number};
    if (!number.empty()) ids.push_back(static_cast<token>(std::stol(number)));
    number.clear();
  }
  return ids;
}

int detokenize(const tokenize_flags& f) {
  const auto tokenizer = open_tokenizer(f.model);
  if (!tokenizer) return report(tokenizer.error());
  const auto input = read_whole("-");
  if (!input) return report(input.error());
  const auto ids = parse_ids(*input);
  if (!ids) return report(ids.error());
  const auto bytes = (*tokenizer)->decode(*ids, {.render_special = true, .strip_space_prefix = true});
  if (!bytes) return report(bytes.error());
  print_text(*bytes);
  return 0;
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<tokenize_flags>();
  const command to_ids(app, "tokenize", "Print the token ids of the text on standard input");
  const command to_bytes(app, "detokenize", "Print the text of the token ids on standard input");
  for (const command& c : {to_ids, to_bytes}) {
    c.add("-m,--model", f->model, "A GGUF file, of which only the tokenizer is read").require().model_file();
  }
  to_ids.add_flag("--json", f->json, "Print a JSON array");
  to_ids.add_flag("--special", f->special, "Read the text of a special token as that token");
  to_ids.on_run(exit_code, [f] { return tokenize(*f); });
  to_bytes.on_run(exit_code, [f] { return detokenize(*f); });
}

}  // namespace redline::actors::cli
