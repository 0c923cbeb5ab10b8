#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/worker_team.hpp"
#include "runtime/architecture/shape_keys.hpp"
#include "runtime/base/terminal_text.hpp"
#include "runtime/gguf/gguf_file.hpp"
#include "runtime/model/numerics.hpp"
#include "runtime/text/tokenizer.hpp"

namespace redline::actors::cli {
namespace {

std::string show(const gguf::value& v) {
  struct visitor {
    std::string operator()(std::uint64_t n) const { return std::to_string(n); }
    std::string operator()(std::int64_t n) const { return std::to_string(n); }
    std::string operator()(double n) const {
      std::ostringstream out;
      out << n;
      return out.str();
    }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::string_view s) const {
      std::string out;
      for (const char c : s.substr(0, 60)) {
        if (c == '\n')
          out += "\\n";
        else
          out += c;
      }
      return "\"" + shown_on_terminal(out) + (s.size() > 60 ? "...\" (" + std::to_string(s.size()) + " bytes)" : "\"");
    }
    std::string operator()(const gguf::array& a) const { return "array of " + std::to_string(a.size()); }
  };
  return std::visit(visitor{}, v.data);
}

int run(const std::string& path, bool all) {
  const auto file = gguf::gguf_file::open(path);
  if (!file) return report(file.error());
  std::cout << path << ": GGUF v" << (*file)->version() << ", " << (*file)->size_bytes() << " bytes\n\nmetadata\n";
  for (const auto& [key, v] : (*file)->metadata())
    std::cout << "  " << shown_on_terminal(key) << " = " << show(v) << "\n";

  std::map<std::string, std::pair<std::size_t, std::uint64_t>> by_type;
  for (const auto& t : (*file)->tensors()) {
    auto& [count, bytes] = by_type[gguf::name_of(t.type)];
    ++count;
    bytes += t.bytes.size();
    if (!all) continue;
    std::cout << "  " << shown_on_terminal(t.name) << " " << gguf::name_of(t.type) << " [";
    for (std::size_t i = t.dimensions.size(); i-- > 0;) std::cout << t.dimensions[i] << (i > 0 ? ", " : "");
    std::cout << "]\n";
  }
  std::cout << "\ntensors: " << (*file)->tensors().size() << "\n";
  for (const auto& [name, sum] : by_type) {
    std::cout << "  " << name << ": " << sum.first << " tensors, " << sum.second << " bytes\n";
  }

  std::cout << "\nthis CPU\n";
  const auto& chosen = kernels::process_table();
  for (const auto& t : kernels::list_targets()) {
    std::cout << "  " << t.name << ": "
              << (t.table == nullptr        ? "not supported: this CPU lacks " + std::string(t.missing)
                  : t.table == chosen.table ? "used"
                                            : "available")
              << "\n";
  }
  if (chosen.table == nullptr) std::cout << "  " << chosen.problem << "\n";
  if (chosen.table != nullptr) {
    const auto kv = kernels::element_type::f16;
    const auto table = model::table_for(**file, *chosen.table, model::numerics::automatic, kv);
    std::cout << "  numerics: "
              << (table ? model::describe_numerics(**table, kv) + ", unless --numerics or --kv say otherwise"
                        : table.error().describe())
              << "\n";
  }
  std::cout << "  compute threads: " << kernels::usable_cpus() << "\n";

  const auto tokenizer = text::tokenizer::from_file(**file);
  std::cout << "\ntokenizer: "
            << (tokenizer ? "ok, " + std::to_string((*tokenizer)->size()) + " tokens" : tokenizer.error().describe())
            << "\n";
  const auto config = architecture::read_shape(**file);
  std::cout << "model: ";
  if (config) {
    std::cout << "ok, " << config->family_name() << ", " << config->layers << " layers, width " << config->width << ", "
              << config->heads << " heads (" << config->kv_heads << " for keys and values), context " << config->context
              << "\n";
  } else {
    std::cout << "cannot run: " << config.error().describe() << "\n";
  }
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  auto path = std::make_shared<std::string>();
  auto all = std::make_shared<bool>(false);
  const command c(app, "inspect", "Show what a model file contains and which kernels this CPU will run");
  c.add("MODEL", *path, "A GGUF file").require().existing_file();
  c.add_flag("--tensors", *all, "List every tensor");
  c.on_run(exit_code, [path, all] { return run(*path, *all); });
}

}  // namespace redline::actors::cli
