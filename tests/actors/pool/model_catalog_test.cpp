#include "actors/pool/model_catalog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redline::actors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Claims that are all equal.
std::vector<model_claim> equal(const std::vector<model_catalog::entry>& models) {
  std::vector<model_claim> out;
  for (const auto& one : models) out.push_back({one});
  return out;
}

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
  const model_catalog c(equal({coder, base}));
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

TEST(model_catalog, gives_a_name_to_the_lower_digest_where_all_else_is_equal_whatever_the_order) {
  const auto one = make("coder", 1), two = make("coder", 2, {"second"});
  for (const auto& models : {std::vector{one, two}, std::vector{two, one}}) {
    const model_catalog c(equal(models));
    EXPECT_EQ(c.find("coder"), one);
    EXPECT_EQ(c.find("second"), nullptr) << "a model without its name is not served";
    EXPECT_EQ(c.models().size(), 1U);
    EXPECT_THAT(c.conflicts(), ElementsAre(HasSubstr("0000000000000002 is not served")));
  }
}

TEST(model_catalog, gives_an_alias_to_the_first_name_and_never_one_that_is_a_name) {
  const auto a = make("a", 9, {"both", "b"}), b = make("b", 1, {"both", "b", ""});
  const model_catalog c(equal({b, a}));
  EXPECT_EQ(c.find("both"), a);
  EXPECT_EQ(c.find("b"), b);
  EXPECT_THAT(c.models()[0].aliases, ElementsAre("both"));
  EXPECT_THAT(c.models()[1].aliases, IsEmpty());
  EXPECT_THAT(c.conflicts(), ElementsAre(HasSubstr("'a' does not get the alias 'b'"),
                                         HasSubstr("'b' does not get the alias 'both', which belongs to 'a'")));
}

TEST(model_catalog, a_name_stays_with_the_model_that_was_there_before) {
  const auto old = make("coder", 9), late = make("coder", 1, {"late"});
  for (const bool is_first : {true, false}) {
    std::vector<model_claim> both{{old, true, 100}, {late, true, 200}};
    if (!is_first) std::swap(both[0], both[1]);
    const model_catalog c(both);
    EXPECT_EQ(c.find("coder"), old) << "although its digest is higher";
    EXPECT_EQ(c.find("late"), nullptr);
    EXPECT_THAT(c.conflicts(), ElementsAre(HasSubstr("0000000000000001 is not served: the model with digest "
                                                     "0000000000000009 has this name until its workers are gone")));
  }
}

TEST(model_catalog, a_name_goes_on_when_its_model_has_no_workers_left) {
  const auto old = make("coder", 1), late = make("coder", 9);
  const model_catalog c({{old, false, 100}, {late, true, 200}});
  EXPECT_EQ(c.find("coder"), late);
  EXPECT_THAT(c.conflicts(), IsEmpty()) << "no worker claims its model";
}

TEST(model_catalog, an_alias_that_is_served_is_taken_neither_by_an_alias_nor_by_a_name) {
  const auto old = make("z", 1, {"prod", "gpt"});
  const auto alias = make("a", 2, {"prod"}), name = make("gpt", 3);
  const model_catalog c({{alias, true, 300}, {old, true, 100}, {name, true, 200}});
  EXPECT_EQ(c.find("prod"), old);
  EXPECT_EQ(c.find("gpt"), old);
  EXPECT_EQ(c.find("a"), alias);
  EXPECT_EQ(c.models().size(), 2U);
  EXPECT_THAT(c.conflicts(), ElementsAre(HasSubstr("model 'gpt' with digest 0000000000000003 is not served"),
                                         HasSubstr("'a' does not get the alias 'prod', which belongs to 'z'")));
}

}  // namespace
}  // namespace redline::actors
