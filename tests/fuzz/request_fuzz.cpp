// For any bytes, every request parser gives a request within its limits or an error with a message.
#include <cstdlib>

#include "actors/http/request/event_id.hpp"
#include "actors/http/shapes/openai/edit_request.hpp"
#include "actors/http/shapes/openai/request.hpp"
#include "tests/fuzz/driver.hpp"

using namespace redline;

std::vector<std::string> fuzz::seeds() {
  return {
      R"({"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"hi"}]}],)"
      R"("max_tokens":5,"temperature":0.5,"top_p":0.9,"seed":-3,"stop":["a","b"],"stream":true,)"
      R"("stream_options":{"include_usage":true},"logit_bias":{"5":-100,"7":1.5},"n":2,"logprobs":true,"top_logprobs":3})",
      R"({"messages":[{"role":"user","content":"x"}],"redline":{"speculation":{"method":"blazedit","max_num_run":4}},)"
      R"("presence_penalty":1,"frequency_penalty":-1,"response_format":{"type":"text"},"user":"u","metadata":{"k":"v"}})",
      R"({"messages":[{"role":"user","content":"x"}],"prediction":{"type":"content","content":[{"type":"text","text":"a"},)"
      R"({"type":"text","text":"b"}]},"redline":{"speculation":{"method":"prediction"}}})",
      R"({"messages":[{"role":"user","content":"x"}],"redline":{"copy":{"trust":"auto","spans":"both","anchors":true,)"
      R"("confidence_min":0.5},"files":["a\nb",{"content":"c","name":"n"}],"speculation":{"method":"lookup"}}})",
      R"({"messages":[{"role":"user","content":"x"}],"redline":{"copy":"verified"},"prediction":{"type":"content","content":"p"}})",
      R"({"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_object"}})",
      R"({"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":)"
      R"(true,"schema":{"type":"object","properties":{"a":{"type":["string","null"],"maxLength":4},"b":{"$ref":"#/$defs/b"}},)"
      R"("$defs":{"b":{"type":"array","items":{"type":"integer","minimum":-3,"maximum":12},"minItems":1}}}}}})",
      R"({"prompt":["a","b"],"echo":false,"best_of":1,"suffix":null,"logprobs":2,"max_tokens":0})",
      R"({"prompt":[[1,2,3],[4]],"min_p":0.1,"top_k":40,"repetition_penalty":1.1,"ignore_eos":true})",
      R"({"content":"text","add_special":true,"parse_special":false,"with_pieces":true})",
      R"({"tokens":[1,2,3]})",
      R"({"model":"m","files":[{"path":"a","text":"b","version":3}],"position_encoding":"utf-8","idle_seconds":5})",
      R"({"files":[],"cache":{"policy":"pie","healing":false}})",
      R"({"cache":{"policy":"conflict"},"files":[{"path":"a","text":""}]})",
      R"({"version":2,"base_version":1,"edits":[{"range":{"start":{"line":0,"character":1},"end":{"line":2,"character":0}},)"
      R"("text":"x"},{"bytes":{"start":0,"end":4},"text":""},{"text":"all"}],"cursor":{"byte":7}})",
      R"({"path":"a","position":{"line":1,"character":2},"mode":"fim","version":4,"instruction":"do","max_tokens":9})",
      api::to_text({.response_high = 1, .created_seconds = 1'700'000'000, .choices = {{.text_bytes = 300}, {}}}),
      "{\"prompt\":\"\\u00e9\\ud83d\\ude42\\u0000\",\"stop\":null}",
      "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  fuzz::check(api::parse_chat_request(body));
  fuzz::check(api::parse_completion_request(body));
  fuzz::check(api::parse_tokenize_request(body));
  fuzz::check(api::parse_detokenize_request(body));
  fuzz::check(api::parse_template_request(body));
  const actors::edit_limits small{.files_max = 2, .file_bytes_max = 64, .session_bytes_max = 100, .edits_max = 3};
  fuzz::check(api::parse_open_session(body, small));
  fuzz::check(api::parse_put_file("a", body, small));
  fuzz::check(api::parse_patch("a", body, small));
  fuzz::check(api::parse_complete(body, small));
  fuzz::check(api::parse_edit(body, small));
  if (const auto id = api::parse_event_id(body); id && api::to_text(*id) != body) std::abort();
  return 0;
}
