#include "actors/cli/help/command_text.hpp"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

namespace redline::actors::cli {
namespace {

using ::testing::ElementsAre;

TEST(command_text, says_what_the_parser_knows) {
  CLI::App app("Probes", "probe");
  std::string model, kv = "f16", out, hidden;
  std::vector<std::string> files;
  std::uint32_t rows = 8;
  bool json = false;
  auto* serve = app.add_subcommand("serve", "Serves");
  serve->add_option("-m,--model", model, "The model")->check(CLI::ExistingFile)->required()->envname("MODEL");
  serve->add_option("--kv", kv, "Keys")->check(CLI::IsMember({"f16", "f32"}))->capture_default_str()->group("Models");
  serve->add_option("--rows", rows, "Rows")->check(CLI::Range(1, 8))->capture_default_str();
  serve->add_option("--keys", out, "Keys")->check(CLI::ExistingDirectory);
  serve->add_option("--text", hidden, "")->group("");
  serve->add_option("FILES", files, "Files")->type_name("FILE");
  serve->add_flag("--json", json, "As JSON");
  app.add_subcommand("bench", "")->prefix_command();

  const command_text text = describe(app);
  ASSERT_EQ(text.commands.size(), 2U);
  EXPECT_TRUE(text.commands[1].hands_over);
  EXPECT_EQ(text.find("nothing"), nullptr);
  const command_text& c = *text.find("serve");
  ASSERT_EQ(c.arguments.size(), 7U);  // --help comes first, and hidden options are left out
  EXPECT_THAT(c.arguments[1].flags, ElementsAre("-m", "--model"));
  EXPECT_EQ(c.arguments[1].kind, value_kind::file);
  EXPECT_TRUE(c.arguments[1].required);
  EXPECT_EQ(c.arguments[1].variable, "MODEL");
  EXPECT_THAT(c.arguments[2].choices, ElementsAre("f16", "f32"));
  EXPECT_EQ(c.arguments[2].value(), "f16|f32");
  EXPECT_EQ(c.arguments[2].preset, "f16");
  EXPECT_EQ(c.arguments[2].group, "Models");
  EXPECT_EQ(c.arguments[3].value(), "N");
  EXPECT_EQ(c.arguments[4].kind, value_kind::folder);
  EXPECT_EQ(c.arguments[5].place, "FILES");
  EXPECT_TRUE(c.arguments[5].repeated);
  EXPECT_EQ(c.arguments[5].kind, value_kind::file);
  EXPECT_EQ(c.arguments[6].kind, value_kind::none);
}

TEST(command_text, shortens_help_at_the_end_of_a_clause) {
  EXPECT_EQ(short_help("Tokens; 0: all"), "Tokens");
  EXPECT_EQ(short_help("Replace the file (in one step)"), "Replace the file");
  EXPECT_EQ(short_help(std::string(50, 'a') + " " + std::string(50, 'b')), std::string(50, 'a') + " ...");
  EXPECT_EQ(short_help(std::string(100, 'a')).size(), 76U);
}

}  // namespace
}  // namespace redline::actors::cli
