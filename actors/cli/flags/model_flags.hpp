#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cli/flags/command_line.hpp"
#include "runtime/base/result.hpp"

namespace redline::actors {
struct engine_options;
}
namespace redline::kernels {
enum class element_type : std::uint8_t;
}

namespace redline::actors::cli {

/// The flags that all commands that load models share.
struct model_flags {
  std::string model;
  std::string draft;
  std::uint32_t draft_context = 0;
  std::string numerics = "auto";
  std::string kv = "f16";
  std::uint32_t threads = 0;
  std::uint32_t context = 0;
  std::uint64_t kv_mib = 0;
  std::string draft_length = "adaptive";
  std::string chat_template;  // a file; empty means the model's own
};
/// Adds all of them and returns --model.
option add_model_flags(command c, model_flags& flags, bool model_required = true);
/// Subsets: --model; --draft; --draft-context; --numerics, --kv, --threads, --context, --kv-mib; --draft-length.
option add_model_file_flag(command c, model_flags& flags);
void add_draft_file_flag(command c, model_flags& flags);
void add_draft_context_flag(command c, model_flags& flags);
void add_memory_flags(command c, model_flags& flags);
void add_draft_length_flag(command c, model_flags& flags);
/// --chat-template, for commands that write conversations.
void add_chat_template_flag(command c, std::string& file);
result<engine_options> to_engine_options(const model_flags& flags);
/// The flags in the form that `redline serve` accepts.
std::vector<std::string> words_of(const model_flags& flags);

/// For a command that either loads a model or asks a server: clears the one that is not meant. A flag takes precedence
/// over the environment and the file. Two flags are an error. If neither value is a flag, the server is used.
result<void> choose_model_or_server(const option& model, std::string& file, const option& server, std::string& url);

/// --threads, where 0 means the CPUs that this process may use.
option add_threads_flag(command c, std::uint32_t& threads);
/// "f32", "f16" or "bf16".
result<kernels::element_type> parse_kv_type(std::string_view name);

}  // namespace redline::actors::cli
