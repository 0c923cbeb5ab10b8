#include "actors/cli/help/man_page.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "runtime/base/version.hpp"

namespace redline::actors::cli {
namespace {

/// Pages carry the date of their version, so that two builds of one version are byte-identical.
constexpr const char* version_date = "2026-11-23";

/// Escapes text so that troff shows it unchanged.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\n')
      out += "\n\\&";  // a line that begins with a dot would be a request
    else
      out.push_back(c);
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}
std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}
std::string ended(const std::string& text) { return text.empty() || text.ends_with('.') ? text : text + "."; }

std::string value_of(const argument_text& a) {
  if (a.kind != value_kind::choice) return italic(a.value());
  std::string out;
  for (const std::string& one : a.choices) out += (out.empty() ? "" : "|\\:") + bold(one);
  return out;
}

std::string tag_of(const argument_text& a) {
  if (a.is_positional()) return italic(a.place) + (a.repeated ? " ..." : "");
  std::string out;
  for (const std::string& flag : a.flags) out += (out.empty() ? "" : ", ") + bold(flag);
  return a.kind == value_kind::none ? out : out + " " + value_of(a);
}

std::string paragraph_of(const argument_text& a) {
  std::string out = ".TP\n" + tag_of(a) + "\n" + escaped(ended(a.help)) + "\n";
  if (a.is_positional() && a.kind == value_kind::choice) out += "One of " + value_of(a) + ".\n";
  if (a.required && !a.is_positional()) out += "Required.\n";
  if (a.repeated && !a.is_positional()) out += "May be given more than once.\n";
  if (!a.preset.empty()) out += "Default: " + escaped(ended(a.preset)) + "\n";
  if (!a.variable.empty()) out += "Environment: " + bold(a.variable) + ".\n";
  return out;
}

std::string synopsis(const std::string& name, const command_text& c) {
  std::string out = bold(name);
  if (c.hands_over) return out + " " + italic("arguments") + " ...\n";
  for (const argument_text& a : c.arguments) {
    if (a.required && !a.is_positional()) out += " " + bold(a.flags.back()) + " " + value_of(a);
  }
  out += " [" + italic("options") + "]";
  if (!c.commands.empty()) out += " " + italic("command");
  for (const argument_text& a : c.arguments) {
    if (a.is_positional()) out += " " + (a.required ? tag_of(a) : "[" + tag_of(a) + "]");
  }
  return out + "\n";
}

/// Positional arguments, then options under the headings of --help, in its order.
std::string arguments_of(const command_text& c, const std::string& macro) {
  std::string places;
  std::vector<std::string> groups;
  for (const argument_text& a : c.arguments) {
    if (a.is_positional())
      places += paragraph_of(a);
    else if (std::find(groups.begin(), groups.end(), a.group) == groups.end())
      groups.push_back(a.group);
  }
  std::string out;
  if (!places.empty()) out += macro + " ARGUMENTS\n" + places;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    out += i == 0 ? macro + " OPTIONS\n" : ".SS " + escaped(groups[i]) + "\n";
    for (const argument_text& a : c.arguments) {
      if (!a.is_positional() && a.group == groups[i]) out += paragraph_of(a);
    }
  }
  return out;
}

std::string begin_of(const std::string& title, const std::string& help) {
  return ".TH " + escaped(upper(title)) + " 1 " + version_date + " \"redline " + version() + "\" \"User Commands\"\n" +
         ".SH NAME\n" + escaped(title) + " \\- " + escaped(help) + "\n";
}

std::string exit_status() {
  return ".SH EXIT STATUS\n.TP\n0\nSuccess.\n.TP\n1\nFailure.\n.TP\n2\nThe command line is wrong.\n.TP\n69\n"
         "Something required, such as a server, is not available.\n.TP\n78\nA file, or what it contains, cannot be "
         "used.\n";
}

std::string see_also(const std::vector<std::string>& pages) {
  std::string out = ".SH SEE ALSO\n";
  for (std::size_t i = 0; i < pages.size(); ++i)
    out += ".BR " + escaped(pages[i]) + " (1)" + (i + 1 < pages.size() ? " ," : "") + "\n";
  return out;
}

std::string sources_of_values(const command_text& program) {
  return "The value of an option comes from the first of these that gives one: its flag, the environment variable "
         "named with it, the TOML file given by " +
         bold("--config") + ", which has a section per command, and the default.\n" +
         bold(program.name + " --print-config") + " " + italic("command") + " shows all values.\n";
}

}  // namespace

std::string man_page(const command_text& program) {
  std::string out = begin_of(program.name, program.help) + ".SH SYNOPSIS\n" + synopsis(program.name, program) +
                    ".SH DESCRIPTION\n" + escaped(ended(program.help)) + "\n" + sources_of_values(program) +
                    ".SH COMMANDS\nEach command has its own manual page.\n";
  std::vector<std::string> pages;
  for (const command_text& c : program.commands) {
    pages.push_back(program.name + "-" + c.name);
    out += ".TP\n" + bold(c.name) + "\n" + escaped(ended(c.help)) + "\n";
  }
  out += arguments_of(program, ".SH") + exit_status();
  return out + see_also(pages);
}

std::string man_page(const command_text& program, const command_text& command) {
  const std::string name = program.name + " " + command.name;
  std::string out = begin_of(program.name + "-" + command.name, command.help) + ".SH SYNOPSIS\n" +
                    synopsis(name, command) + ".SH DESCRIPTION\n" + escaped(ended(command.help)) + "\n";
  if (!command.hands_over) out += sources_of_values(program);
  if (command.hands_over) out += "See " + bold(name + " --help") + " for its arguments.\n";
  for (const command_text& sub : command.commands) {
    out += ".SH \"COMMAND: " + escaped(sub.name) + "\"\n" + synopsis(name + " " + sub.name, sub) + ".PP\n" +
           escaped(ended(sub.help)) + "\n" + arguments_of(sub, ".SS");
  }
  out += arguments_of(command, ".SH") + exit_status();
  return out + see_also({program.name});
}

}  // namespace redline::actors::cli
