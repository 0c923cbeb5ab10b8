#include "runtime/huggingface/model_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/hf_model.hpp"
#include "tests/support/temporary_folder.hpp"

namespace redline::huggingface {
namespace {

using testing::HasSubstr;

class model_folder_test : public testing::Test {
 protected:
  model_folder_test() {
    put("config.json", "{}");
    put("tokenizer.json", "{}");
  }
  void put(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  void put_tensors(const std::string& name, const std::string& tensor) {
    put(name, test::safetensors_bytes(test::hf_tensors{{tensor, {"U8", {1}, {std::byte{1}}}}}));
  }
  void put_index(const std::string& weight_map) {
    put("model.safetensors.index.json", R"({"metadata":{},"weight_map":)" + weight_map + "}");
  }
  std::string refusal() {
    const auto opened = model_folder::open(folder_.path());
    if (opened) return "none";
    EXPECT_TRUE(opened.error().context.starts_with(folder_.path())) << opened.error().context;
    return opened.error().context;
  }

  const test::temporary_folder folder_;
};

TEST_F(model_folder_test, one_file_of_tensors_is_enough) {
  put_tensors("model.safetensors", "a");
  const auto opened = model_folder::open(folder_.path()).value();
  EXPECT_TRUE(opened.tensors().contains("a"));
  EXPECT_EQ(opened.tokenizer_config(), nullptr);
  EXPECT_EQ(opened.chat_template(), std::nullopt);
  EXPECT_EQ(opened.sources().size(), 3U);
}

TEST_F(model_folder_test, shards_may_be_links_and_come_together) {
  std::filesystem::create_directory(folder_ / "blobs");
  put_tensors("blobs/first", "a");
  std::filesystem::create_symlink("blobs/first", folder_ / "m1.safetensors");
  put_tensors("m2.safetensors", "b");
  put_index(R"({"a":"m1.safetensors","b":"m2.safetensors"})");
  const auto opened = model_folder::open(folder_.path()).value();
  EXPECT_EQ(opened.tensors().size(), 2U);
  EXPECT_EQ(opened.tensors().at("b").file->path(), folder_ / "m2.safetensors");
}

TEST_F(model_folder_test, optional_documents_are_read_when_they_are_there) {
  put_tensors("model.safetensors", "a");
  put("tokenizer_config.json", R"({"x":1})");
  put("generation_config.json", "[]");
  put("chat_template.jinja", "{{ x }}");
  const auto opened = model_folder::open(folder_.path()).value();
  EXPECT_EQ(opened.tokenizer_config()->at("x"), 1);
  EXPECT_TRUE(opened.generation_config()->is_array());
  EXPECT_EQ(opened.chat_template(), "{{ x }}");
}

TEST_F(model_folder_test, missing_files_are_named) {
  EXPECT_THAT(refusal(), HasSubstr("expected model.safetensors or model.safetensors.index.json, found neither"));
  std::filesystem::remove(folder_ / "tokenizer.json");
  EXPECT_THAT(refusal(), HasSubstr("/tokenizer.json: cannot be opened"));
  std::filesystem::remove(folder_ / "config.json");
  EXPECT_THAT(refusal(), HasSubstr("/config.json: cannot be opened"));
}

TEST_F(model_folder_test, an_index_names_files_of_this_folder_only) {
  for (const char* name :
       {R"("../m.safetensors")", R"("/etc/m.safetensors")", R"("sub/m.safetensors")", R"("")", R"("..")",
        R"(".m.safetensors")", R"("m.bin")", R"("a\\m.safetensors")", R"("m\u0000.safetensors")", "7", "null", "[]"}) {
    put_index(R"({"a":)" + std::string(name) + "}");
    EXPECT_THAT(refusal(), HasSubstr("weight_map: tensor 'a': expected the name of a .safetensors file")) << name;
  }
  put_index(R"({"a":"absent.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("/absent.safetensors: cannot be opened"));
}

TEST_F(model_folder_test, an_index_that_disagrees_with_its_shards_is_refused) {
  put_tensors("m1.safetensors", "a");
  put_tensors("m2.safetensors", "b");
  put_index(R"({"a":"m2.safetensors","b":"m1.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("tensor 'a': expected in 'm2.safetensors', found in "));
  put_index(R"({"a":"m1.safetensors","c":"m2.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("tensor 'c': expected in 'm2.safetensors', found nowhere"));
  put_tensors("m2.safetensors", "a");
  put_index(R"({"a":"m1.safetensors","b":"m2.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("'a': expected in one file, found also in "));
}

TEST_F(model_folder_test, an_index_of_the_wrong_shape_is_refused) {
  put_index("{}");
  EXPECT_THAT(refusal(), HasSubstr("weight_map: expected tensors in 1 to 1024 files, found 0"));
  put_index("[]");
  EXPECT_THAT(refusal(), HasSubstr("weight_map: expected an object, found an array of 0"));
  put("model.safetensors.index.json", "[]");
  EXPECT_THAT(refusal(), HasSubstr("expected an object, found an array of 0"));
}

TEST_F(model_folder_test, broken_documents_are_named) {
  put_tensors("model.safetensors", "a");
  put("chat_template.jinja", std::string((1U << 20) + 1, 'x'));
  EXPECT_THAT(refusal(), HasSubstr("/chat_template.jinja: expected at most 1048576 bytes"));
  put("generation_config.json", "{");
  EXPECT_THAT(refusal(), HasSubstr("/generation_config.json: not valid JSON"));
}

}  // namespace
}  // namespace redline::huggingface
