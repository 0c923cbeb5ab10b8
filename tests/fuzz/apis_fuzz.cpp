// For any bytes, the request parsers of the other APIs give a request within its limits or an error with a message.
#include "actors/http/shapes/anthropic/messages_request.hpp"
#include "actors/http/shapes/apply/apply_request.hpp"
#include "actors/http/shapes/apply/edit_completion.hpp"
#include "actors/http/shapes/apply/next_edit.hpp"
#include "actors/http/shapes/ollama/ollama_request.hpp"
#include "actors/http/shapes/responses/responses_request.hpp"
#include "tests/fuzz/driver.hpp"

using namespace redline;

std::vector<std::string> fuzz::seeds() {
  return {
      R"({"model":"m","max_tokens":9,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[)"
      R"({"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"tool_use","id":"t",)"
      R"("name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}],)"
      R"("tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{"a":{"type":"integer"}}}}],)"
      R"("tool_choice":{"type":"any"},"stop_sequences":["x"],"thinking":{"type":"disabled"},"stream":true})",
      R"({"model":"m","instructions":"i","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]},)"
      R"({"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c",)"
      R"("output":"o"}],"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true}],)"
      R"("metadata":{"k":"v"},"max_output_tokens":5,"text":{"format":{"type":"text"}},"reasoning":{"effort":"low"}})",
      R"({"model":"m","input":"text","previous_response_id":null,"store":false,"parallel_tool_calls":true})",
      R"({"model":"m","messages":[{"role":"user","content":"x","images":[]}],"options":{"temperature":0.5,"num_predict":5,)"
      R"("stop":["a"],"seed":3},"format":{"type":"object"},"stream":false,"keep_alive":"5m"})",
      R"({"model":"m","prompt":"a","suffix":"b","system":"s","template":"","raw":true,"options":{"top_k":5},"format":"json"})",
      R"({"name":"m","verbose":true})",
      R"({"model":"m","original_code":"a\nb","update":"// ... existing code ...\nc","instruction":"do","stream":true})",
      R"({"model":"m","messages":[{"role":"user","content":"<|current_file_content|>\na\n<|/current_file_content|>"}]})",
      R"({"file_path":"a","file_contents":"a\nb\n","cursor_position":2,"use_bytes":true,"recent_changes":"File: a:\n<<<<<<< )"
      R"(ORIGINAL\na\n=======\nb\n>>>>>>> UPDATED\n","file_chunks":[{"file_path":"b","content":"c"}],"editor_diagnostics":[)"
      R"({"line":1,"message":"m"}],"changes_above_cursor":true})",
      "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  fuzz::check(anthropic::parse_messages(body));
  fuzz::check(anthropic::parse_count(body));
  fuzz::check(responses::parse_responses(body));
  fuzz::check(ollama::parse_chat(body));
  fuzz::check(ollama::parse_generate(body));
  fuzz::check(ollama::parse_show(body));
  fuzz::check(apply::parse_apply(body));
  fuzz::check(apply::parse_edit_completion(body));
  fuzz::check(apply::parse_next_edit(body));
  return 0;
}
