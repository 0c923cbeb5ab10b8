#include "actors/cli/review/text_editor.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/temporary_folder.hpp"

namespace redline::actors::cli {
namespace {

class text_editor : public testing::Test {
 protected:
  text_editor() { ::setenv("TMPDIR", folder_.path().c_str(), 1); }
  ~text_editor() override {
    for (const char* name : {"TMPDIR", "VISUAL", "EDITOR"}) ::unsetenv(name);
  }
  test::temporary_folder folder_;
};

TEST_F(text_editor, is_the_one_of_the_environment_with_its_arguments) {
  ::setenv("EDITOR", "false", 1);
  ::setenv("VISUAL", "sed -i s/a/b/", 1);
  const auto text = edit_text("a line\n");
  ASSERT_TRUE(text) << text.error().context;
  EXPECT_EQ(*text, "b line\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(text_editor, that_fails_is_named) {
  ::setenv("EDITOR", "sh -c 'exit 7'", 1);
  EXPECT_THAT(edit_text("x").error().context, ::testing::HasSubstr("the editor 'sh -c 'exit 7'' ended with exit code 7"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace redline::actors::cli
