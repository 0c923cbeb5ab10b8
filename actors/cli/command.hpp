#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/editing/edit_prompt.hpp"
#include "actors/node/engine.hpp"
#include "actors/serving/token_log.hpp"
#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// Exit codes: 0 well, 1 failed, 2 usage, 69 something needed is unavailable, 78 configuration.
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_unavailable = 69;
inline constexpr int exit_config = 78;

/// Each adds one subcommand (see add_command).
void add_generate(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_edit(CLI::App& app, int& exit_code);
void add_session(CLI::App& app, int& exit_code);
void add_serve(CLI::App& app, int& exit_code);
void add_worker(CLI::App& app, int& exit_code);
void add_keygen(CLI::App& app, int& exit_code);
void add_demo(CLI::App& app, int& exit_code);
void add_synth(CLI::App& app, int& exit_code);
void add_quantize(CLI::App& app, int& exit_code);
void add_convert(CLI::App& app, int& exit_code);
void add_copy(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);

/// What the commands that load models have in common.
struct model_flags {
  std::string model;
  std::string draft;
  std::uint32_t draft_context = 0;
  std::string kv = "f16";
  std::uint32_t threads = 0;
  std::uint32_t context = 0;
  std::uint64_t kv_mib = 0;
  std::string draft_length = "adaptive";
};
/// --threads, 0 for the CPUs that this process may use.
CLI::Option* add_threads_flag(CLI::App& app, std::uint32_t& threads);
/// "f32", "f16" or "bf16".
result<model::kv_type> kv_type_of(std::string_view name);
void add_model_flags(CLI::App& app, model_flags& flags, bool model_required = true);
result<engine_options> engine_options_of(const model_flags& flags);

/// The drafting flags of generate and edit.
struct method_flags {
  std::string method = "auto";
  std::string copy_trust = "forced";  // with method copy, as the next three
  std::string copy_spans = "lines";
  bool copy_anchors = false;
  float copy_confidence_min = copy_options{}.confidence_min;
  draft::draft_options options;
};
/// with_copy: --method copy as well, which asks for a program over the file instead of the file.
void add_method_flags(CLI::App& app, method_flags& flags, bool with_copy = false);
/// The same without --method.
void add_drafting_flags(CLI::App& app, method_flags& flags);
/// Of --method copy.
copy_options copy_options_of(const method_flags& flags);
/// Fails for a method that needs a draft model when there is none.
result<draft::draft_options> draft_options_of(const method_flags& flags, bool has_draft_model);
std::string_view name_of(draft::method how);
/// Of every method there is.
std::vector<std::string> method_names();

/// What happens at the end of the window, for generate and serve.
struct eviction_flags {
  std::string policy = "off";
  std::optional<std::uint32_t> n_keep, n_discard;
  std::uint32_t n_ctx = 0;
};
void add_eviction_flags(CLI::App& app, eviction_flags& flags);
kv::eviction_options eviction_options_of(const eviction_flags& flags);

/// What a generation gave.
struct outcome {
  std::string text;
  std::vector<token> tokens;
  finish_reason reason = finish_reason::stop;
  session_stats stats;
  copy_report copied;
};

/// Runs one generation through the actors of this process. on_text: called on another thread as text comes.
result<outcome> generate_locally(engine_options options, const draft::draft_options& how,
                                 const std::function<result<generation_spec>(const engine&)>& make_request,
                                 const std::function<void(const session_text&)>& on_text);

/// Prints "redline: ..." to standard error and returns the exit code that fits the failure.
int report(const failure& why);
/// A one-line display on standard error, only on a terminal.
class progress_line {
 public:
  explicit progress_line(bool wanted = true);
  ~progress_line();
  void show(const std::string& text);
  void clear();

 private:
  bool active_;
  std::size_t width_ = 0;
};
/// "WHAT [###...] 12 of 34 MiB"; clears the line at the end.
void show_progress(progress_line& line, const std::string& what, std::uint64_t done, std::uint64_t all);
void show_loading(progress_line& line, const std::string& what, std::uint64_t done, std::uint64_t all);

/// The whole file or standard input ("-").
result<std::string> read_whole(const std::string& path);
result<void> write_whole(const std::string& path, const std::string& bytes);

}  // namespace redline::actors::cli
