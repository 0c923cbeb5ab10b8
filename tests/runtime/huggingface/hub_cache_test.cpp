#include "runtime/huggingface/hub_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace redline::huggingface {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;

class hub_cache : public testing::Test {
 protected:
  void add(const std::string& revision, const std::string& file) {
    const fs::path path = fs::path(folder_ / "models--org--name") / "snapshots" / revision / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }
  void set_main(const std::string& revision) {
    fs::create_directories(folder_ / "models--org--name/refs");
    std::ofstream(folder_ / "models--org--name/refs/main") << revision;
  }
  [[nodiscard]] std::string found(const std::string& name) const {
    const auto path = find_in_hub_cache(folder_.path(), name);
    return path ? *path : "refused: " + path.error().context;
  }

 private:
  test::temporary_folder folder_;
};

TEST_F(hub_cache, finds_the_only_model_or_the_one_of_a_quant) {
  add("abc", "name-Q4_K_M.gguf");
  add("abc", "mmproj-name.gguf");
  add("abc", "README.md");
  EXPECT_THAT(found("org/name"), EndsWith("snapshots/abc/name-Q4_K_M.gguf"));
  add("abc", "big/name-Q8_0-00002-of-00002.gguf");
  add("abc", "big/name-Q8_0-00001-of-00002.gguf");
  EXPECT_THAT(found("org/name:q8_0"), EndsWith("big/name-Q8_0-00001-of-00002.gguf"));
  EXPECT_THAT(found("org/name:Q4_K_M"), EndsWith("name-Q4_K_M.gguf"));
}

TEST_F(hub_cache, takes_the_revision_of_main) {
  add("old", "a-q8_0.gguf");
  add("new", "b-q8_0.gguf");
  set_main("old");
  EXPECT_THAT(found("org/name"), EndsWith("old/a-q8_0.gguf"));
  set_main("gone");
  EXPECT_THAT(found("org/name"), testing::AnyOf(EndsWith("a-q8_0.gguf"), EndsWith("b-q8_0.gguf")));
  set_main("../../../etc");
  EXPECT_THAT(found("org/name"), testing::AnyOf(EndsWith("a-q8_0.gguf"), EndsWith("b-q8_0.gguf")));
}

TEST_F(hub_cache, says_what_there_is_and_how_to_get_what_there_is_not) {
  EXPECT_THAT(found("org/name"), HasSubstr("hf download org/name"));
  add("abc", "model.safetensors");
  EXPECT_THAT(found("org/name"), HasSubstr("redline convert"));
  add("abc", "n-Q4_0.gguf");
  add("abc", "n-Q8_0.gguf");
  EXPECT_THAT(found("org/name"), HasSubstr("several of its files match: n-Q4_0.gguf, n-Q8_0.gguf"));
  EXPECT_THAT(found("org/name:iq4_xs"),
              HasSubstr("none of its files has 'iq4_xs' in its name; the files are n-Q4_0.gguf"));
}

TEST(hub_name, is_told_from_a_path) {
  EXPECT_TRUE(looks_like_hub_name("Qwen/Qwen2.5-Coder-7B-Instruct-GGUF:Q4_K_M"));
  EXPECT_TRUE(looks_like_hub_name("org/name"));
  for (const char* path : {"model.gguf", "models/model.gguf", "/abs/path", "../org/name", "org/..", "a/b/c",
                           "org/name:", "org/name:../x", "", "/", ":"}) {
    EXPECT_FALSE(looks_like_hub_name(path)) << path;
  }
}

}  // namespace
}  // namespace redline::huggingface
