#include "actors/cli/processes/client_keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace redline::actors::cli {
namespace {

using ::testing::HasSubstr;

class client_keys : public testing::Test {
 protected:
  void TearDown() override {
    ::unlink(file.c_str());
    for (const char* name : {"REDLINE_API_KEY", "REDLINE_API_KEY_FILE"}) ::unsetenv(name);
  }
  void write(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(file, std::ios::binary) << text;
    ::chmod(file.c_str(), mode);
  }

  const std::string file = testing::TempDir() + "redline_client_keys_" + std::to_string(::getpid());
};

TEST_F(client_keys, are_nobodys_wish_where_nothing_is_given) {
  const auto loaded = load_client_keys({}, "");
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->empty());
}

TEST_F(client_keys, are_missed_in_a_variable_that_is_set_but_empty) {
  for (const char* name : {"REDLINE_API_KEY", "REDLINE_API_KEY_FILE"}) {
    ::setenv(name, "", 1);
    const auto loaded = load_client_keys({}, "");
    ASSERT_FALSE(loaded) << name;
    EXPECT_EQ(loaded.error().code, errc::file_malformed) << "exit code 78";
    EXPECT_THAT(loaded.error().context, HasSubstr(std::string(name) + " is set but empty"));
    EXPECT_TRUE(load_client_keys({"sk-key-of-a-flag"}, "")) << "a flag takes precedence over the variable";
    ::unsetenv(name);
  }
}

TEST_F(client_keys, of_a_file_that_everybody_can_read_are_a_warning) {
  for (const mode_t mode : {0600, 0640}) {
    write("ann:sk-key-of-ann\n", mode);
    testing::internal::CaptureStderr();
    EXPECT_TRUE(load_client_keys({}, file));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << mode;
  }
  write("ann:sk-key-of-ann\n", 0644);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(load_client_keys({}, file));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("every user of this machine can read the API keys in " + file));
}

TEST_F(client_keys, are_read_anew_and_stay_where_the_file_holds_none) {
  write("ann:sk-key-of-ann\n");
  key_ring ring(*load_client_keys({"sk-key-of-a-flag"}, file));
  write("ben:sk-key-of-ben\n");
  const auto before = ring.snapshot();
  reload_client_keys(ring, {"sk-key-of-a-flag"}, file);
  EXPECT_FALSE(ring.snapshot()->find("sk-key-of-ann"));
  EXPECT_EQ(ring.snapshot()->find("sk-key-of-ben")->name, "ben");
  EXPECT_TRUE(ring.snapshot()->find("sk-key-of-a-flag"));
  EXPECT_TRUE(before->find("sk-key-of-ann")) << "a holder of the old keys can continue to use them";
  for (const char* bad : {"", "# nobody yet\n", "ben:short\n"}) {
    write(bad);
    testing::internal::CaptureStderr();
    reload_client_keys(ring, {"sk-key-of-a-flag"}, file);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the keys, which stay as they were"));
    EXPECT_TRUE(ring.snapshot()->find("sk-key-of-ben")) << bad;
  }
}

}  // namespace
}  // namespace redline::actors::cli
