#include "actors/cli/lsp/rpc_message.hpp"

#include <gtest/gtest.h>

namespace redline::actors::cli::lsp {
namespace {

TEST(rpc_message, is_a_request_a_notification_or_a_response) {
  const auto request = parse_rpc(R"({"jsonrpc":"2.0","id":7,"method":"shutdown"})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->what, rpc_message::kind::request);
  EXPECT_EQ(request->id, 7);
  EXPECT_EQ(request->method, "shutdown");
  EXPECT_TRUE(request->params.is_null());
  const auto named = parse_rpc(R"({"jsonrpc":"2.0","id":"a","method":"m","params":[1]})");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->id, "a");
  const auto notification = parse_rpc(R"({"jsonrpc":"2.0","method":"exit","params":{}})");
  ASSERT_TRUE(notification);
  EXPECT_EQ(notification->what, rpc_message::kind::notification);
  const auto response = parse_rpc(R"({"jsonrpc":"2.0","id":1,"result":{"applied":true}})");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->what, rpc_message::kind::response);
  EXPECT_FALSE(response->failed);
  EXPECT_EQ(member(response->result, "applied"), true);
  const auto error = parse_rpc(R"({"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}})");
  ASSERT_TRUE(error);
  EXPECT_TRUE(error->failed);
}

TEST(rpc_message, refuses_with_the_codes_of_the_specification) {
  const auto refused = [](std::string_view text) {
    const auto m = parse_rpc(text);
    EXPECT_FALSE(m) << text;
    return m ? refused_message{} : m.error();
  };
  for (const char* text : {"", "{", "nonsense", "{\"jsonrpc\":\"2.0\",}", "{\"a\":1,\"a\":2}", "\"\xff\""}) {
    EXPECT_EQ(refused(text).why.code, rpc_code::parse_error) << text;
    EXPECT_TRUE(refused(text).id.is_null()) << text;
  }
  EXPECT_EQ(refused(std::string(100, '[')).why.code, rpc_code::parse_error);
  for (const char* text :
       {"[]", "1", "{}", R"({"jsonrpc":"1.0","method":"m"})", R"({"jsonrpc":"2.0"})", R"({"jsonrpc":"2.0","method":1})",
        R"({"jsonrpc":"2.0","method":"m","params":3})", R"({"jsonrpc":"2.0","id":1.5,"method":"m"})",
        R"([{"jsonrpc":"2.0","id":1,"method":"m"}])"}) {
    EXPECT_EQ(refused(text).why.code, rpc_code::invalid_request) << text;
  }
  EXPECT_EQ(refused(R"({"jsonrpc":"2.0","id":4,"method":1})").id, 4);
}

TEST(rpc_message, keeps_the_width_of_half_a_surrogate_pair) {
  EXPECT_EQ(mend_surrogates(R"("\ud83d\ude00 \ud83d \uDE00 \\ud83d \ud83d")"),
            R"("\ud83d\ude00 \ufffd \ufffd \\ud83d \ufffd")");
  EXPECT_EQ(mend_surrogates(R"(\)"), R"(\)");
  EXPECT_EQ(mend_surrogates(R"(\ud8)"), R"(\ud8)");
  const auto m = parse_rpc(R"({"jsonrpc":"2.0","method":"m","params":["\ud83d"]})");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->params[0], "\ufffd");
}

TEST(rpc_message, reads_positions) {
  const auto at = position_of(json::parse(R"({"line":3,"character":99999999999})"));
  ASSERT_TRUE(at);
  EXPECT_EQ(*at, (text::text_position{3, 0xFFFFFFFF}));
  for (const char* bad : {"{}", "null", "[]", R"({"line":1})", R"({"line":-1,"character":0})",
                          R"({"line":"1","character":0})", R"({"line":1.5,"character":0})"}) {
    const auto none = position_of(json::parse(bad));
    ASSERT_FALSE(none) << bad;
    EXPECT_EQ(none.error().code, rpc_code::invalid_params);
  }
  EXPECT_FALSE(range_of(json::parse(R"({"start":{"line":1,"character":0}})")));
}

}  // namespace
}  // namespace redline::actors::cli::lsp
