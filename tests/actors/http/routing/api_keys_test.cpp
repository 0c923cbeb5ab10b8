#include "actors/http/routing/api_keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace redline::actors {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A file that exists as long as the test runs.
class key_file {
 public:
  explicit key_file(const std::string& text)
      : path_(::testing::TempDir() + "redline_keys_" + std::to_string(::getpid())) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~key_file() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

api_keys keys_of(const std::vector<std::string>& lines) {
  auto keys = api_keys::load(lines);
  EXPECT_TRUE(keys) << keys.error().describe();
  return std::move(*keys);
}

TEST(api_keys, finds_exactly_the_keys_it_was_given) {
  const auto keys = keys_of({"sk-first-key", " sk-second-key ", "team-a:sk-third-key"});
  EXPECT_EQ(keys.size(), 3u);
  EXPECT_TRUE(keys.find("sk-first-key"));
  EXPECT_TRUE(keys.find("sk-second-key"));
  EXPECT_TRUE(keys.find("sk-third-key"));
  for (const char* wrong : {"", "sk-first-ke", "sk-first-key2", "SK-FIRST-KEY", "team-a:sk-third-key", "team-a"}) {
    EXPECT_FALSE(keys.find(wrong)) << wrong;
  }
}

TEST(api_keys, know_when_there_are_none) {
  EXPECT_TRUE(keys_of({}).empty());
  EXPECT_FALSE(keys_of({}).find("sk-first-key"));
  EXPECT_FALSE(keys_of({"sk-first-key"}).empty());
}

TEST(api_keys, give_keys_of_one_name_one_tenant) {
  const auto keys = keys_of({"a:key-number-1", "a:key-number-2", "b:key-number-3", "key-number-4", "key-number-5"});
  EXPECT_EQ(keys.find("key-number-1"), keys.find("key-number-2"));
  EXPECT_EQ(keys.find("key-number-1")->name, "a");
  EXPECT_NE(keys.find("key-number-1")->tenant, keys.find("key-number-3")->tenant);
  EXPECT_NE(keys.find("key-number-4")->tenant, keys.find("key-number-5")->tenant);
  EXPECT_EQ(keys.find("key-number-4")->name, "");
}

TEST(api_keys, give_the_same_tenant_in_every_process) {
  // The first eight bytes of SHA-256("redline tenant name:a") and of SHA-256("redline tenant key:key-number-4").
  const auto keys = keys_of({"a:key-number-1", "key-number-4"});
  EXPECT_EQ(keys.find("key-number-1")->tenant.value, 0x31ef2583b278071cU);
  EXPECT_EQ(keys.find("key-number-4")->tenant.value, 0xec00a6c0917e4dd5U);
}

TEST(api_keys, are_read_from_a_file_with_comments) {
  const key_file file("# keys of the team\n\n  sk-from-file-1 \r\nteam-a: sk-from-file-2\n   # end\nsk-from-file-3");
  const std::vector<std::string> lines{"sk-from-option"};
  const auto keys = api_keys::load(lines, file.path());
  ASSERT_TRUE(keys) << keys.error().describe();
  EXPECT_EQ(keys->size(), 4u);
  EXPECT_EQ(keys->find("sk-from-file-2")->name, "team-a");
  EXPECT_TRUE(keys->find("sk-from-file-1"));
  EXPECT_TRUE(keys->find("sk-from-file-3"));
}

TEST(api_keys, are_expected_in_a_file) {
  for (const char* none : {"", "\n \n", "# nobody yet\n"}) {
    const key_file file(none);
    const std::vector<std::string> lines{"sk-from-option"};
    for (const auto& keys : {api_keys::load({}, file.path()), api_keys::load(lines, file.path())}) {
      ASSERT_FALSE(keys) << none;
      EXPECT_EQ(keys.error().code, errc::file_malformed);
      EXPECT_THAT(keys.error().context, HasSubstr("'" + file.path() + "' contains no key"));
    }
  }
}

TEST(api_keys, count_tenants) {
  EXPECT_EQ(keys_of({}).tenants_count(), 0u);
  EXPECT_EQ(keys_of({"a:key-number-1", "a:key-number-2", "b:key-number-3", "key-number-4"}).tenants_count(), 3u);
}

TEST(api_keys, may_be_repeated_by_one_owner_only) {
  EXPECT_EQ(keys_of({"sk-same-key", "sk-same-key"}).size(), 1u);
  const std::vector<std::string> two_owners{"a:sk-same-key", "b:sk-same-key"};
  EXPECT_FALSE(api_keys::load(two_owners));
}

TEST(api_keys, refuse_bad_lines_without_repeating_them) {
  for (const std::string& bad :
       {std::string("short"), std::string(), std::string(513, 'x'), std::string("has a blank in it"),
        std::string("caf\xc3\xa9-secret-key"), std::string("bad name:sk-secret-key"), std::string(":sk-secret-key"),
        std::string("name:"), std::string(65, 'n') + ":sk-secret-key"}) {
    const std::vector<std::string> lines{"sk-good-key", bad};
    const auto keys = api_keys::load(lines);
    ASSERT_FALSE(keys) << bad;
    EXPECT_EQ(keys.error().code, errc::invalid_argument);
    EXPECT_THAT(keys.error().context, HasSubstr("option 2"));
    EXPECT_THAT(keys.error().context, Not(HasSubstr("secret"))) << bad;
  }
  const key_file file("sk-good-key\n\nshort\n");
  const auto from_file = api_keys::load({}, file.path());
  ASSERT_FALSE(from_file);
  EXPECT_THAT(from_file.error().context, HasSubstr("line 3"));
}

TEST(api_keys, say_when_the_file_is_missing) {
  const auto keys = api_keys::load({}, "/nowhere/keys");
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().code, errc::file_unreadable);
}

TEST(prefix_scope, differs_by_tenant_and_salt) {
  const auto scope = to_prefix_scope({7}, "a");
  EXPECT_EQ(scope, to_prefix_scope({7}, "a"));
  EXPECT_NE(scope, to_prefix_scope({7}, "b"));
  EXPECT_NE(scope, to_prefix_scope({8}, "a"));
  EXPECT_NE(to_prefix_scope({1}, "1:x"), to_prefix_scope({11}, ":x"));
  EXPECT_NE(scope, 7U) << "a tenant's own requests have none";
}

TEST(bearer_key, is_what_follows_the_scheme) {
  EXPECT_EQ(bearer_key("Bearer sk-1"), "sk-1");
  EXPECT_EQ(bearer_key("bEARER \t sk-1  "), "sk-1");
  for (const char* none : {"", "Bearer", "Bearer  ", "Basic abc", "Bearersk-1", "sk-1"}) {
    EXPECT_EQ(bearer_key(none), std::nullopt) << none;
  }
}

}  // namespace
}  // namespace redline::actors
