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

/// What the commands that load models have in common.
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
  std::string chat_template;  // a file; empty: the model's own
};
/// All of them; gives --model.
option add_model_flags(command c, model_flags& flags, bool model_required = true);
/// Parts of it: --model; --draft; --draft-context; --numerics, --kv, --threads, --context, --kv-mib; --draft-length.
option add_model_file_flag(command c, model_flags& flags);
void add_draft_file_flag(command c, model_flags& flags);
void add_draft_context_flag(command c, model_flags& flags);
void add_memory_flags(command c, model_flags& flags);
void add_draft_length_flag(command c, model_flags& flags);
/// --chat-template, of the commands that write conversations.
void add_chat_template_flag(command c, std::string& file);
result<engine_options> to_engine_options(const model_flags& flags);
/// As `redline serve` takes them.
std::vector<std::string> words_of(const model_flags& flags);

/// For a command that loads a model itself or asks a server: empties the one that is not meant. A flag goes before the
/// environment and the file; two flags are a failure, and of two values that are no flags the server counts.
result<void> choose_model_or_server(const option& model, std::string& file, const option& server, std::string& url);

/// --threads, 0 for the CPUs that this process may use.
option add_threads_flag(command c, std::uint32_t& threads);
/// "f32", "f16" or "bf16".
result<kernels::element_type> parse_kv_type(std::string_view name);

}  // namespace redline::actors::cli
