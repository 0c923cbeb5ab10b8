#include "actors/cli/help/man_page.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/actors/cli/help/probe_text.hpp"
#include "tests/support/shell_call.hpp"
#include "tests/support/temporary_folder.hpp"

namespace redline::actors::cli {
namespace {

using ::testing::HasSubstr;

TEST(man_page, tells_of_every_option_under_its_heading) {
  const command_text program = probe_text();
  const std::string page = man_page(program, *program.find("serve"));
  EXPECT_THAT(page, HasSubstr(".TH PROBE\\-SERVE 1 "));
  EXPECT_THAT(page, HasSubstr("\n.SH NAME\nprobe\\-serve \\- Serve [a model]: over HTTP\n"));
  EXPECT_THAT(page, HasSubstr("\\fBprobe serve\\fR \\fB\\-\\-model\\fR \\fIFILE\\fR [\\fIoptions\\fR]\n"));
  EXPECT_THAT(page, HasSubstr(".SS Models\n.TP\n\\fB\\-m\\fR, \\fB\\-\\-model\\fR \\fIFILE\\fR\n"
                              "The model's file, .gguf; or a name.\nRequired.\nEnvironment: \\fBPROBE_MODEL\\fR.\n"));
  EXPECT_THAT(page,
              HasSubstr("\\fB\\-\\-kv\\fR \\fBf16\\fR|\\:\\fBf32\\fR|\\:\\fBbf16\\fR\nType of keys.\nDefault: f16.\n"));
  EXPECT_THAT(page, HasSubstr("How \\emany.\n"));
  EXPECT_THAT(page, HasSubstr(".SH EXIT STATUS\n"));
}

TEST(man_page, of_the_program_names_the_pages_of_its_commands) {
  const std::string page = man_page(probe_text());
  EXPECT_THAT(page, HasSubstr(".TP\n\\fBsession\\fR\nSessions.\n"));
  EXPECT_THAT(page, HasSubstr(".BR probe\\-serve (1) ,\n.BR probe\\-session (1) ,\n.BR probe\\-bench (1)\n"));
}

TEST(man_page, of_a_command_has_the_commands_below_it) {
  const command_text program = probe_text();
  const std::string page = man_page(program, *program.find("session"));
  EXPECT_THAT(page,
              HasSubstr(".SH \"COMMAND: new\"\n\\fBprobe session new\\fR [\\fIoptions\\fR] [\\fIFILES\\fR ...]\n"));
}

TEST(man_page, no_line_of_text_becomes_a_request) {
  command_text program = probe_text();
  program.commands[0].help = ".gguf files\n.so /etc/passwd";
  const std::string page = man_page(program, program.commands[0]);
  EXPECT_THAT(page, HasSubstr("\n\\&.gguf files\n\\&.so /etc/passwd"));
}

// Runs each checker that is installed.
TEST(man_page, is_read_without_a_warning) {
  const test::temporary_folder folder;
  const command_text program = probe_text();
  std::vector<std::string> pages{man_page(program)};
  for (const command_text& c : program.commands) pages.push_back(man_page(program, c));
  int checked = 0;
  for (const char* checker : {"groff -man -ww -z", "mandoc -T lint -W warning", "man --warnings -l"}) {
    const std::string name = std::string(checker).substr(0, std::string(checker).find(' '));
    if (!test::has_program(name)) continue;
    ++checked;
    for (const std::string& page : pages) {
      std::ofstream(folder / "page.1") << page;
      EXPECT_EQ(test::call_shell(std::string(checker) + " " + (folder / "page.1") + " 2>&1 >/dev/null").out, "");
      EXPECT_EQ(name == "mandoc" ? test::call_shell(std::string(checker) + " " + (folder / "page.1")).out : "", "");
    }
  }
  if (checked == 0) GTEST_SKIP() << "neither groff nor mandoc nor man is installed";
}

}  // namespace
}  // namespace redline::actors::cli
