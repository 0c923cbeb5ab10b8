#include "actors/cli/flags/model_flags.hpp"

#include <fstream>
#include <sstream>

#include "actors/node/cost_cache.hpp"
#include "actors/node/engine.hpp"
#include "runtime/jinja/chat_template.hpp"
#include "runtime/model/numerics.hpp"

namespace redline::actors::cli {
namespace {

result<std::string> read_template(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return failure{errc::file_unreadable, "--chat-template: cannot read " + path};
  std::ostringstream text;
  text << in.rdbuf();
  if (const auto parsed = jinja::chat_template::parse(text.str()); !parsed) {
    return failure{parsed.error().code, "--chat-template " + path + ": " + parsed.error().context};
  }
  return text.str();
}

}  // namespace

option add_model_flags(command c, model_flags& flags, bool model_required) {
  const option model = add_model_file_flag(c, flags).require(model_required);
  add_draft_file_flag(c, flags);
  add_draft_context_flag(c, flags);
  add_memory_flags(c, flags);
  add_draft_length_flag(c, flags);
  return model;
}

option add_model_file_flag(command c, model_flags& flags) {
  return c.add("-m,--model", flags.model, "The model, a GGUF file").model_file().require().group("Models");
}

void add_draft_file_flag(command c, model_flags& flags) {
  c.add("-d,--draft", flags.draft, "Draft model, a GGUF file with the same vocabulary").model_file().group("Models");
}

void add_draft_context_flag(command c, model_flags& flags) {
  c.add("--draft-context", flags.draft_context,
        "Maximum number of tokens that the draft model reads: of a longer text, the beginning, the part being copied "
        "and "
        "the end; 0 means the model's context")
      .range(0, 1 << 24)
      .group("Models");
}

void add_memory_flags(command c, model_flags& flags) {
  c.add("--numerics", flags.numerics,
        "How products are computed, which determines an answer's bytes. int8: quantized weights times rows rounded to "
        "bytes, with the same answers on every CPU; float: without rounding; bf16: by AMX, emulated on AVX-512; auto: "
        "int8 for quantized models, otherwise bf16 on CPUs with AMX and float on others; with --kv f32 always float")
      .one_of({"auto", "float", "bf16", "int8"})
      .group("Models");
  c.add("--kv", flags.kv, "Type of cached keys and values of the target model; the draft model's are q8_0")
      .one_of({"f32", "f16", "bf16", "q8_0", "i16"})
      .group("Models");
  add_threads_flag(c, flags.threads)
      .describe("Number of compute threads per model; 0 means the CPUs that this process may use")
      .group("Models");
  c.add("--context", flags.context, "Maximum number of tokens of prompt and answer; 0 means the model's context")
      .group("Models");
  c.add("--kv-mib", flags.kv_mib,
        "Memory for cached keys and values per model, in MiB; 0 means a quarter of what this process may use")
      .group("Models");
}

void add_draft_length_flag(command c, model_flags& flags) {
  c.add("--draft-length", flags.draft_length,
        "How much of a draft a pass verifies. adaptive: the tokens that are expected to save more time than they cost "
        "on this machine; whole: as many as fit")
      .one_of({"adaptive", "whole"})
      .group("Drafting");
}

void add_chat_template_flag(command c, std::string& file) {
  c.add("--chat-template", file,
        "File with a Jinja chat template for conversations with and without tools; default: the templates of the "
        "model's file")
      .existing_file()
      .group("Models");
}

option add_threads_flag(command c, std::uint32_t& threads) {
  return c.add("--threads", threads, "Number of compute threads; 0 means the CPUs that this process may use")
      .range(0, 1024);
}

result<kernels::element_type> parse_kv_type(std::string_view name) {
  for (const kernels::element_type type : kernels::all_element_types) {
    if (kernels::name_of(type) == name) return type;
  }
  return failure{errc::invalid_argument,
                 "keys and values: expected f32, f16, bf16, q8_0 or i16, found '" + std::string(name) + "'"};
}

result<void> choose_model_or_server(const option& model, std::string& file, const option& server, std::string& url) {
  if (model.given_as_flag() && server.given_as_flag()) {
    return failure{errc::invalid_argument, "expected --model FILE or --server URL, found both"};
  }
  if (model.given_as_flag()) {
    url.clear();
  } else if (server.given()) {
    file.clear();
  }
  return {};
}

result<engine_options> to_engine_options(const model_flags& flags) {
  engine_options options;
  options.target_path = flags.model;
  options.draft_path = flags.draft;
  options.draft_context = flags.draft_context;
  REDLINE_TRY_ASSIGN(options.numerics, model::parse_numerics(flags.numerics));
  REDLINE_TRY_ASSIGN(options.kv, parse_kv_type(flags.kv));
  options.threads = flags.threads;
  options.context_max = flags.context;
  options.kv_bytes_max = flags.kv_mib << 20;
  options.whole_drafts = flags.draft_length == "whole";
  options.measuring_max = microseconds{2'000'000};
  options.cost_folder = cost_cache::usual_folder();
  if (!flags.chat_template.empty()) {
    REDLINE_TRY_ASSIGN(options.chat_template, read_template(flags.chat_template));
  }
  return options;
}

std::vector<std::string> words_of(const model_flags& flags) {
  std::vector<std::string> words{"--model", flags.model, "--numerics", flags.numerics, "--kv", flags.kv};
  const auto add = [&](const char* name, const std::string& value) { words.insert(words.end(), {name, value}); };
  if (!flags.draft.empty()) add("--draft", flags.draft);
  if (!flags.chat_template.empty()) add("--chat-template", flags.chat_template);
  add("--draft-context", std::to_string(flags.draft_context));
  add("--draft-length", flags.draft_length);
  add("--threads", std::to_string(flags.threads));
  add("--context", std::to_string(flags.context));
  add("--kv-mib", std::to_string(flags.kv_mib));
  return words;
}

}  // namespace redline::actors::cli
