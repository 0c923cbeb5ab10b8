#include "actors/cli/command.hpp"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "actors/cli/local_runner.hpp"
#include "actors/node/cost_cache.hpp"

namespace redline::actors::cli {

void add_model_flags(CLI::App& app, model_flags& flags, bool model_required) {
  auto* model =
      app.add_option("-m,--model", flags.model, "Target model, a GGUF file")->check(CLI::ExistingFile)->group("Models");
  if (model_required) model->required();
  app.add_option("-d,--draft", flags.draft, "Draft model, a GGUF file with the same vocabulary")
      ->check(CLI::ExistingFile)
      ->group("Models");
  app.add_option(
         "--draft-context", flags.draft_context,
         "Most tokens that the draft model looks at; of longer texts it reads the beginning, where they are copied "
         "from, and the end. 0, and at most: the model's context")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str()
      ->group("Models");
  app.add_option("--kv", flags.kv, "Type of cached keys and values")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->capture_default_str()
      ->group("Models");
  add_threads_flag(app, flags.threads)
      ->description("Compute threads per model; 0: the CPUs this process may use")
      ->group("Models");
  app.add_option("--context", flags.context, "Most tokens of prompt and answer; 0: the model's")
      ->capture_default_str()
      ->group("Models");
  app.add_option("--kv-mib", flags.kv_mib,
                 "Memory for cached keys and values per model, MiB; 0: a quarter of what this process may use")
      ->capture_default_str()
      ->group("Models");
  app.add_option("--draft-length", flags.draft_length,
                 "How much of a draft a pass verifies. adaptive: the tokens that are expected to save more time than "
                 "they cost on this machine; whole: as many as fit")
      ->check(CLI::IsMember({"adaptive", "whole"}))
      ->capture_default_str()
      ->group("Drafting");
}

CLI::Option* add_threads_flag(CLI::App& app, std::uint32_t& threads) {
  return app.add_option("--threads", threads, "Compute threads; 0: the CPUs this process may use")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

result<model::kv_type> kv_type_of(std::string_view name) {
  for (const model::kv_type type : kernels::all_element_types) {
    if (kernels::name_of(type) == name) return type;
  }
  return failure{errc::invalid_argument, "keys and values: wanted f32, f16 or bf16, found '" + std::string(name) + "'"};
}

result<engine_options> engine_options_of(const model_flags& flags) {
  engine_options options;
  options.target_path = flags.model;
  options.draft_path = flags.draft;
  options.draft_context = flags.draft_context;
  REDLINE_TRY_ASSIGN(options.kv, kv_type_of(flags.kv));
  options.threads = flags.threads;
  options.context_max = flags.context;
  options.kv_bytes_max = flags.kv_mib << 20;
  options.whole_drafts = flags.draft_length == "whole";
  options.measuring_max = microseconds{2'000'000};
  options.cost_folder = cost_cache::usual_folder();
  return options;
}

void add_method_flags(CLI::App& app, method_flags& flags, bool with_copy) {
  std::vector<std::string> names{"auto", "regular", "lookup", "assisted", "blazedit", "prediction"};
  if (with_copy) {
    names.emplace_back("copy");
    app.add_option("--copy-trust", flags.copy_trust,
                   "copy: whether a span is copied because the program says so (forced), as far as the model agrees "
                   "(verified), "
                   "or forced where its anchors are right or the model is sure of its numbers (auto)")
        ->check(CLI::IsMember({"forced", "verified", "auto"}))
        ->capture_default_str()
        ->group("Drafting");
    app.add_option("--copy-spans", flags.copy_spans, "copy: what a span counts")
        ->check(CLI::IsMember({"lines", "tokens", "both"}))
        ->capture_default_str()
        ->group("Drafting");
    app.add_option("--copy-confidence-min", flags.copy_confidence_min,
                   "copy: auto without anchors forces a span whose numbers the model gives this probability")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str()
        ->group("Drafting");
    app.add_flag("--copy-anchors", flags.copy_anchors,
                 "copy: each span of lines also says how its first and last line begin")
        ->group("Drafting");
  }
  app.add_option(
         "--method", flags.method,
         std::string("How drafts are made; the output is the same bytes with each. auto: learns in every answer which "
                     "pays") +
             (with_copy ? ". copy: the model writes what to copy and what is new" : ""))
      ->check(CLI::IsMember(names))
      ->capture_default_str()
      ->group("Drafting");
  add_drafting_flags(app, flags);
}

void add_drafting_flags(CLI::App& app, method_flags& flags) {
  app.add_option("--max-matching-ngram-size", flags.options.max_matching_ngram_size,
                 "lookup, blazedit, prediction, auto: longest n-gram")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group("Drafting");
  app.add_option("--lookup-tokens", flags.options.lookup_tokens_max,
                 "lookup, prediction, auto: tokens per draft at most")
      ->check(CLI::Range(1, 512))
      ->capture_default_str()
      ->group("Drafting");
  app.add_option("--assisted-tokens", flags.options.assisted_tokens_max, "assisted: tokens per draft")
      ->check(CLI::Range(1, 512))
      ->capture_default_str()
      ->group("Drafting");
  app.add_option("--confidence-min", flags.options.confidence_min, "assisted: the draft stops below this probability")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group("Drafting");
  app.add_option("--micro-draft-tokens", flags.options.micro_draft_tokens, "blazedit: tokens looked up per draft pass")
      ->check(CLI::Range(1, 512))
      ->capture_default_str()
      ->group("Drafting");
  app.add_option("--max-num-run", flags.options.max_num_run, "blazedit: draft passes per target pass")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group("Drafting");
}

void add_eviction_flags(CLI::App& app, eviction_flags& flags) {
  app.add_option(
         "--eviction", flags.policy,
         "At the end of the window: off ends the answer; the others let the oldest tokens go and compute the rest "
         "again (reevaluate), turn its keys in place (shift) or count them as moved (lazy)")
      ->check(CLI::IsMember({"off", "reevaluate", "shift", "lazy"}))
      ->capture_default_str()
      ->group("Window");
  app.add_option("--n-keep", flags.n_keep,
                 "First tokens that always stay; the prompt when not given, of a conversation without its older turns")
      ->group("Window");
  app.add_option("--n-discard", flags.n_discard,
                 "Tokens that go at a time; half of the rest, up to a line's end, when not given")
      ->check(CLI::Range(1, 1 << 24))
      ->group("Window");
  app.add_option("--n-ctx", flags.n_ctx, "Tokens of the window; 0: the context")
      ->capture_default_str()
      ->group("Window");
}

kv::eviction_options eviction_options_of(const eviction_flags& flags) {
  return {.policy = kv::parse_eviction_policy(flags.policy).value_or(kv::eviction_policy::off),
          .n_keep = flags.n_keep,
          .n_discard = flags.n_discard,
          .n_ctx = flags.n_ctx};
}

copy_options copy_options_of(const method_flags& flags) {
  return {.trust = copy_trust_of(flags.copy_trust).value_or(copy_trust::forced),
          .line_spans = flags.copy_spans != "tokens",
          .token_spans = flags.copy_spans != "lines",
          .anchors = flags.copy_anchors,
          .confidence_min = flags.copy_confidence_min};
}

result<draft::draft_options> draft_options_of(const method_flags& flags, bool has_draft_model) {
  draft::draft_options options = flags.options;
  const std::string name = flags.method == "copy" ? "lookup" : flags.method;
  if ((name == "assisted" || name == "blazedit") && !has_draft_model) {
    return failure{errc::invalid_argument, "method " + name + " needs a draft model (--draft)"};
  }
  for (std::uint8_t i = 0; i < static_cast<std::uint8_t>(draft::method::last_); ++i) {
    if (name_of(static_cast<draft::method>(i)) == name) options.how = static_cast<draft::method>(i);
  }
  return options;
}

std::string_view name_of(draft::method how) {
  switch (how) {
    case draft::method::regular:
      return "regular";
    case draft::method::lookup:
      return "lookup";
    case draft::method::assisted:
      return "assisted";
    case draft::method::blazedit:
      return "blazedit";
    case draft::method::prediction:
      return "prediction";
    case draft::method::automatic:
      return "auto";
    case draft::method::last_:
      break;
  }
  return "?";
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (std::uint8_t i = 0; i < static_cast<std::uint8_t>(draft::method::last_); ++i) {
    names.emplace_back(name_of(static_cast<draft::method>(i)));
  }
  return names;
}

result<outcome> generate_locally(engine_options options, const draft::draft_options& how,
                                 const std::function<result<generation_spec>(const engine&)>& make_request,
                                 const std::function<void(const session_text&)>& on_text) {
  REDLINE_TRY_ASSIGN(const auto runner, local_runner::create(std::move(options)));
  REDLINE_TRY_ASSIGN(auto request, make_request(runner->parts()));
  return runner->run(std::move(request), how, on_text);
}

int report(const failure& why) {
  std::cerr << "redline: " << why.describe() << "\n";
  switch (why.code) {
    case errc::invalid_argument:
      return exit_usage;
    case errc::not_ready:
    case errc::unreachable:
    case errc::timed_out:
      return exit_unavailable;
    case errc::file_malformed:
    case errc::unsupported_format:
    case errc::file_unreadable:
      return exit_config;
    default:
      return exit_failed;
  }
}

progress_line::progress_line(bool wanted) : active_(wanted && isatty(STDERR_FILENO) != 0) {}
progress_line::~progress_line() { clear(); }

void progress_line::show(const std::string& text) {
  if (!active_) return;
  const std::size_t padding = width_ > text.size() ? width_ - text.size() : 0;
  std::fprintf(stderr, "\r%s%*s", text.c_str(), static_cast<int>(padding), "");
  std::fflush(stderr);
  width_ = text.size();
}

void progress_line::clear() {
  if (!active_ || width_ == 0) return;
  std::fprintf(stderr, "\r%*s\r", static_cast<int>(width_), "");
  std::fflush(stderr);
  width_ = 0;
}

void show_loading(progress_line& line, const std::string& what, std::uint64_t done, std::uint64_t all) {
  show_progress(line, "loading " + what, done, all);
}

void show_progress(progress_line& line, const std::string& what, std::uint64_t done, std::uint64_t all) {
  if (done >= all) return line.clear();
  const int filled = static_cast<int>(30 * done / std::max<std::uint64_t>(all, 1));
  line.show(what + " [" + std::string(static_cast<std::size_t>(filled), '#') +
            std::string(static_cast<std::size_t>(30 - filled), '.') + "] " + std::to_string(done >> 20) + " of " +
            std::to_string(all >> 20) + " MiB");
}

result<std::string> read_whole(const std::string& path) {
  std::ostringstream out;
  if (path == "-") {
    out << std::cin.rdbuf();
    return out.str();
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return failure{errc::file_unreadable, "cannot read " + path};
  out << in.rdbuf();
  return out.str();
}

result<void> write_whole(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  if (!out.flush()) return failure{errc::io_error, "cannot write " + path};
  return {};
}

}  // namespace redline::actors::cli
