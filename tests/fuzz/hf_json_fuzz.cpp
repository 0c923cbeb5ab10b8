// Any bytes are refused or parse as documents of a Hugging Face folder: a configuration, and a tokenizer that fits into
// a GGUF file.
#include <cstdlib>

#include "runtime/huggingface/model_config.hpp"
#include "runtime/huggingface/tokenizer.hpp"
#include "runtime/text/vocabulary.hpp"
#include "tests/fuzz/driver.hpp"
#include "tests/support/hf_model.hpp"

using namespace redline;

namespace {

constexpr std::uint32_t vocabulary = 40;

/// Every failure names the file.
template<class Answer>
bool accepted(const Answer& answer) {
  if (!answer && !answer.error().context.starts_with("fuzz: ")) std::abort();
  return answer.has_value();
}

void try_tokenizer(const huggingface::json_object& document) {
  gguf::gguf_writer out;
  if (!accepted(huggingface::put_tokenizer({document, document, document, document, std::nullopt}, vocabulary, out)))
    return;
  const auto file = gguf::gguf_file::from_bytes(out.bytes(), "fuzz");
  if (!file || !text::vocabulary::load(**file)) std::abort();
}

std::string small_tokenizer(const std::string& pre_tokenizer) {
  return R"({"added_tokens":[{"id":6,"content":"<s>","special":true},{"id":7,"content":"<x>"}],)"
         R"("normalizer":{"type":"NFC"},"pre_tokenizer":)" +
         pre_tokenizer +
         R"(,"post_processor":{"type":"Sequence","processors":[{"type":"ByteLevel"},{"type":"TemplateProcessing",)"
         R"("single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}]}]},"model":{"type":"BPE","vocab":{"a":0,)"
         R"("b":1,"ab":2,"c":3,"abc":4,"bc":5},"merges":["a b",["ab","c"],"b c"]},"bos_token":"<s>",)"
         R"("eos_token":{"content":"<x>"},"pad_token_id":[2,3],"chat_template":[{"name":"default","template":"t"}]})";
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  return {test::make_hf_model({}).config.dump(),
          test::make_hf_model({.architecture = "phi3"}).config.dump(),
          test::make_hf_model({.architecture = "deepseek2", .experts = 4, .shared_feed_forward = 32}).config.dump(),
          small_tokenizer(R"({"type":"ByteLevel","add_prefix_space":false})"),
          small_tokenizer(test::split_into_bytes(test::qwen2_words).dump()),
          small_tokenizer(R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)"
                          R"({"type":"ByteLevel","add_prefix_space":false}]})"),
          R"({"architectures":["LlamaForCausalLM"],"rope_scaling":{"rope_type":"llama3","factor":8.0,)"
          R"("low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":256}})",
          R"({"model":{"type":"BPE","byte_fallback":true,"unk_token":"a","vocab":{"a":0,"<0x00>":1},"merges":[]},)"
          R"("normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"}})"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto document = huggingface::parse_document({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!accepted(document)) return 0;
  const auto root = huggingface::json_object::of(*document, "fuzz");
  if (!accepted(root)) return 0;
  const auto config = huggingface::read_model_config(*root);
  if (accepted(config)) static_cast<void>(huggingface::rope_divisors(*config));
  try_tokenizer(*root);
  return 0;
}
