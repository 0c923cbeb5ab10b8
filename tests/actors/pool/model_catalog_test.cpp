#include "actors/pool/model_catalog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redline::actors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

model_catalog::entry make(const std::string& name, std::uint64_t digest, std::vector<std::string> aliases = {}) {
  auto model = std::make_shared<served_model>();
  model->name = name;
  model->digest = digest;
  model->aliases = std::move(aliases);
  return model;
}

TEST(model_catalog, finds_models_by_name_and_alias_and_the_first_without_a_name) {
  const auto coder = make("coder", 2, {"gpt-4o", "fast"});
  const auto base = make("base", 1);
  const model_catalog c({coder, base});
  EXPECT_EQ(c.find("coder"), coder);
  EXPECT_EQ(c.find("fast"), coder);
  EXPECT_EQ(c.find("base"), base);
  EXPECT_EQ(c.find(""), base);
  EXPECT_EQ(c.find("other"), nullptr);
  ASSERT_EQ(c.models().size(), 2U);
  EXPECT_EQ(c.models()[1].model, coder);
  EXPECT_THAT(c.models()[1].aliases, ElementsAre("fast", "gpt-4o"));
  EXPECT_THAT(c.conflicts(), IsEmpty());
}

TEST(model_catalog, may_be_empty) {
  const model_catalog c;
  EXPECT_TRUE(c.empty());
  EXPECT_EQ(c.find(""), nullptr);
}

TEST(model_catalog, gives_a_name_to_the_lower_digest_whatever_the_order) {
  const auto one = make("coder", 1), two = make("coder", 2, {"second"});
  for (const auto& models : {std::vector{one, two}, std::vector{two, one}}) {
    const model_catalog c(models);
    EXPECT_EQ(c.find("coder"), one);
    EXPECT_EQ(c.find("second"), nullptr) << "a model without its name is not served";
    EXPECT_EQ(c.models().size(), 1U);
    EXPECT_THAT(c.conflicts(), ElementsAre(HasSubstr("0000000000000002 is not served")));
  }
}

TEST(model_catalog, gives_an_alias_to_the_first_name_and_never_one_that_is_a_name) {
  const auto a = make("a", 9, {"both", "b"}), b = make("b", 1, {"both", "b", ""});
  const model_catalog c({b, a});
  EXPECT_EQ(c.find("both"), a);
  EXPECT_EQ(c.find("b"), b);
  EXPECT_THAT(c.models()[0].aliases, ElementsAre("both"));
  EXPECT_THAT(c.models()[1].aliases, IsEmpty());
  EXPECT_THAT(c.conflicts(), ElementsAre(HasSubstr("'a' goes without the alias 'b'"),
                                         HasSubstr("'b' goes without the alias 'both': it stands for 'a'")));
}

}  // namespace
}  // namespace redline::actors
