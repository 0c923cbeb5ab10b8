#include "runtime/architecture/tensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "runtime/architecture/shape_keys.hpp"
#include "runtime/convert/synth.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::architecture {
namespace {

using ::testing::HasSubstr;
using dimensions_by_name = std::map<std::string, std::vector<std::uint64_t>>;

dimensions_by_name tensors_in(const gguf::gguf_file& file) {
  dimensions_by_name found;
  for (const gguf::tensor& t : file.tensors()) {
    if (!t.name.starts_with("rope_f")) found[std::string(t.name)] = {t.dimensions.begin(), t.dimensions.end()};
  }
  return found;
}

dimensions_by_name tensors_named_by(const model_shape& shape) {
  dimensions_by_name named;
  const auto add = [&](const std::vector<tensor>& some) {
    for (const tensor& t : some) EXPECT_TRUE(named.emplace(t.gguf, t.dimensions()).second) << t.gguf;
  };
  add(outer_tensors(shape));
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) add(layer_tensors(shape, layer));
  return named;
}

std::vector<std::string> tiny_shapes() {
  std::vector<std::string> names;
  std::istringstream all(convert::shape_names());
  for (std::string name; std::getline(all, name, ',');) {
    name.erase(0, name.find_first_not_of(' '));
    if (name.starts_with("tiny")) names.push_back(name);
  }
  return names;
}

/// A synthetic file contains exactly the tensors that the family's row names for the shape read from that file.
TEST(tensors, of_a_synthetic_file_are_those_that_its_family_names) {
  const test::temporary_folder folder;
  kernels::worker_team team(1);
  std::set<std::string_view> seen;
  for (const std::string& name : tiny_shapes()) {
    SCOPED_TRACE(name);
    const auto shape = convert::find_shape(name).value();
    seen.insert(shape.family_name());
    const std::string path = folder / (name + ".gguf");
    const auto written =
        convert::write_synthetic({.shape = shape, .type = convert::output_type::parse("q8_0").value()}, path, team);
    ASSERT_TRUE(written) << written.error().describe();
    const auto file = gguf::gguf_file::open(path).value();
    const auto read = read_shape(*file);
    ASSERT_TRUE(read) << read.error().describe();
    EXPECT_EQ(tensors_in(*file), tensors_named_by(*read));
    EXPECT_EQ(tensors_in(*file), tensors_named_by(shape));
  }
  // There is no shape to synthesize for these, so a small model replaces it.
  for (const char* family : {"qwen3", "gemma", "starcoder2"}) {
    SCOPED_TRACE(family);
    seen.insert(family);
    const auto file = test::make_tiny_model({.architecture = family, .tied_head = false}).file();
    const auto read = read_shape(*file);
    ASSERT_TRUE(read) << read.error().describe();
    EXPECT_EQ(tensors_in(*file), tensors_named_by(*read));
  }
  for (const family& f : families()) EXPECT_TRUE(seen.contains(f.name)) << f.name << " is written by nothing here";
}

TEST(tensors, of_an_unknown_family_are_told_from_those_of_the_nearest_ones) {
  test::tiny_model m = test::make_tiny_model({.architecture = "qwen3"});
  m.metadata["general.architecture"] = std::string("qwen36");
  std::erase_if(m.tensors, [](const auto& t) { return t.name == "blk.0.attn_k_norm.weight"; });
  m.tensor("blk.0.attn_q_norm.weight").name = "blk.0.ssm_conv1d.weight";
  const auto read = read_shape(*m.file());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, errc::unsupported_format);
  EXPECT_THAT(read.error().context, HasSubstr("general.architecture: expected one of llama, "));
  EXPECT_THAT(read.error().context, HasSubstr("found 'qwen36' (nearest: qwen3 has no ssm_conv1d.weight, and needs "
                                              "attn_q_norm.weight, attn_k_norm.weight; qwen35 "));
  m = test::make_tiny_model();
  m.metadata["general.architecture"] = std::string("lama");
  EXPECT_THAT(read_shape(*m.file()).error().context, HasSubstr("(nearest: llama has the same tensors"));
}

}  // namespace
}  // namespace redline::architecture
