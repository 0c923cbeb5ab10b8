// redline doctor: reports this machine's properties, whether its kernels pass their checks, whether a model fits, and
// how fast it runs.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/commands/doctor_report.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/progress_line.hpp"
#include "actors/node/memory_plan.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/int8_tables.hpp"
#include "runtime/convert/synth.hpp"
#include "runtime/model/numerics.hpp"
#include "runtime/text/tokenizer.hpp"
#include "scheduler/batch_builder.hpp"

namespace redline::actors::cli {
namespace {

struct doctor_flags {
  std::string model;
  std::uint32_t threads = 0;
  bool json = false;
};

/// A temporary folder that is deleted with this object.
class scratch_folder {
 public:
  scratch_folder() {
    std::error_code none;  // on an error, the current folder is used
    path_ = (std::filesystem::temp_directory_path(none) / "redline-doctor-XXXXXX").string();
    made_ = mkdtemp(path_.data()) != nullptr;
  }
  ~scratch_folder() {
    std::error_code ignored;
    if (made_) std::filesystem::remove_all(path_, ignored);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  /// A path in the folder, or an unwritable path if the folder could not be made.
  [[nodiscard]] std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  bool made_ = false;
};

/// A model with every part that large ones have, small enough for the scalar target to compute it quickly.
result<std::shared_ptr<const gguf::gguf_file>> small_model(kernels::worker_team& team) {
  convert::synth_options options;
  REDLINE_TRY_ASSIGN(options.shape, convert::find_shape("tiny"));
  options.shape.width = 64;
  options.shape.head_dim = 32;
  options.shape.feed_forward = 96;
  options.shape.vocabulary = 300;
  const scratch_folder folder;
  REDLINE_TRY(convert::write_synthetic(options, folder / "small.gguf", team));
  return gguf::gguf_file::open(folder / "small.gguf");
}

class doctor {
 public:
  explicit doctor(const doctor_flags& f) : flags_(f), line_(!f.json) {}

  doctor_findings examine() {
    found_.cpus = kernels::cpus_of_this_process();
    found_.threads_asked = flags_.threads;
    found_.memory = kernels::read_machine_memory();
    found_.target = kernels::process_table();
    team_ = std::make_unique<kernels::worker_team>(found_.threads(), true);
    measure_machine();
    try_kernels();
    if (!flags_.model.empty()) try_model();
    line_.clear();
    return std::move(found_);
  }

 private:
  void measure_machine() {
    if (found_.target.table == nullptr) return;
    line_.show("measuring read bandwidth and multiply-adds");
    // Measures the arithmetic of quantized models; the rate of floats is measured as well.
    const kernels::kernel_table* integers = kernels::int8_table_of(*found_.target.table);
    const kernels::kernel_table& table = integers != nullptr ? *integers : *found_.target.table;
    kernels::worker_team one(1);
    if (team_->size() > 1) found_.bounds.push_back({1, kernels::measure_bounds(table, one)});
    found_.bounds.push_back({team_->size(), kernels::measure_bounds(table, *team_)});
  }

  void try_kernels() {
    const auto start = std::chrono::steady_clock::now();
    const auto checks = run_self_test();
    found_.checks_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!checks) {
      found_.checks_problem = checks.error().describe();
    } else {
      found_.checks = *checks;
    }
  }

  result<std::vector<model::self_check>> run_self_test() {
    std::vector<const kernels::kernel_table*> tables;
    for (const kernels::target_info& t : kernels::list_targets()) {
      if (t.table != nullptr) tables.push_back(t.table);
    }
    REDLINE_TRY_ASSIGN(const auto small, small_model(*team_));
    std::size_t done = 0;
    return model::self_test({.tables = tables,
                             .reference = *kernels::choose_table("scalar").table,
                             .model = *small,
                             .threads = std::max(2U, team_->size())},  // a team of one would prove nothing
                            [&](const model::self_check& c) {
                              line_.show("check " + std::to_string(++done) + ", " + c.target + ": " + c.claim);
                            });
  }

  void try_model() {
    found_.model.emplace().path = flags_.model;
    const auto tried = examine_model(*found_.model);
    if (!tried) found_.model->problem = tried.error().describe();
  }

  result<void> examine_model(model_findings& m) {
    REDLINE_TRY_ASSIGN(const auto file, gguf::gguf_file::open(m.path));
    REDLINE_TRY_ASSIGN(m.config, architecture::read_shape(*file));
    for (const auto& t : file->tensors()) m.file_bytes[gguf::name_of(t.type)] += t.bytes.size();
    if (found_.target.table == nullptr) return failure{errc::unsupported_format, found_.target.problem};
    REDLINE_TRY_ASSIGN(const auto* table,
                       model::table_for(*file, *found_.target.table, model::numerics::automatic, model::kv_type::f16));
    m.numerics = model::describe_numerics(*table, model::kv_type::f16);
    m.weight_bytes = model::weight_bytes(*file, *table);
    for (const model::kv_type kv : kernels::all_element_types) {
      m.kv_bytes[static_cast<std::size_t>(kv)] = model::page_bytes(m.config, kv) * kv_bytes_tokens / kv::page_tokens;
    }
    const pool_request whole_context{.bytes_max = std::numeric_limits<std::uint64_t>::max(),
                                     .sequences_max = 1,
                                     .tokens_max = m.config.context,
                                     .rows_max = scheduler::budget().prompt_chunk_rows_max};
    m.context_bytes =
        model::storage_bytes(m.config, model::kv_type::f16, choose_pool(m.config, model::kv_type::f16, whole_context));
    REDLINE_TRY(text::tokenizer::from_file(*file));
    REDLINE_TRY(check_memory(m));
    return measure_model(*file, *table, m);
  }

  result<void> check_memory(const model_findings& m) const {
    const std::uint64_t needed = m.weight_bytes + m.kv_bytes[static_cast<std::size_t>(model::kv_type::f16)];
    const std::uint64_t usable = found_.memory.usable_bytes();
    if (needed <= usable) return {};
    return failure{errc::unsupported_format, m.path + ": weights and 1,000 tokens of f16 keys and values need " +
                                                 std::to_string(needed >> 20) + " MiB, but this process may use only " +
                                                 std::to_string(usable >> 20) + " MiB"};
  }

  result<void> measure_model(const gguf::gguf_file& file, const kernels::kernel_table& table, model_findings& m) {
    REDLINE_TRY_ASSIGN(auto weights,
                       model::load_weights(file, table, *team_, [&](std::uint64_t done, std::uint64_t all) {
                         show_loading(line_, "model", done, all);
                       }));
    REDLINE_TRY_ASSIGN(const auto probe, forward_probe::create(file, std::move(weights), table, *team_, {}));
    m.held = kernels::read_held_memory();
    for (const std::uint32_t rows : {1U, 64U}) {
      line_.show("passes of " + std::to_string(rows) + " rows");
      m.cells.push_back(probe->measure(rows, {}));
    }
    return {};
  }

  const doctor_flags& flags_;
  progress_line line_;
  std::unique_ptr<kernels::worker_team> team_;
  doctor_findings found_;
};

int run(const doctor_flags& f) {
  const doctor_findings found = doctor(f).examine();
  if (f.json) {
    std::cout << json_of(found).dump() << "\n";
  } else {
    print_findings(found, std::cout);
  }
  return found.healthy() ? 0 : exit_failed;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<doctor_flags>();
  const command c(app, "doctor", "Measure this machine, check its kernels, and see how a model runs on it");
  c.add("--model", f->model, "A GGUF file to try").any_file();
  add_threads_flag(c, f->threads);
  c.add_flag("--json", f->json, "Print one JSON object");
  c.on_run(exit_code, [f] { return run(*f); });
}

}  // namespace redline::actors::cli
