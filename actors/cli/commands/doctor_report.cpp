#include "actors/cli/commands/doctor_report.hpp"

#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "kernels/machine/cpu_features.hpp"

namespace redline::actors::cli {
namespace {

using nlohmann::ordered_json;

std::vector<std::string> feature_names() {
  const kernels::cpu_features& cpu = kernels::this_cpu();
  const std::pair<const char*, bool> all[] = {
      {"AVX2", cpu.avx2},
      {"AVX-512", cpu.avx512},
      {"AVX-512 VNNI", cpu.avx512_vnni},
      {"AVX-512 BF16", cpu.avx512_bf16},
      {"AVX-512 FP16", cpu.avx512_fp16},
      {"AMX BF16", cpu.amx_bf16},
      {"AMX INT8", cpu.amx_int8},
      {"NEON", cpu.neon},
      {"dot products", cpu.neon_dotprod},
      {"I8MM", cpu.neon_i8mm},
  };
  std::vector<std::string> found;
  for (const auto& [name, has] : all) {
    if (has) found.emplace_back(name);
  }
  return found;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "none" : text;
}

/// Explains the number of threads.
std::string thread_reason(const doctor_findings& f) {
  const kernels::cpu_share& c = f.cpus;
  const std::string online = std::to_string(c.online);
  if (f.threads_asked > c.usable()) {
    return "as requested, which is more than the " + std::to_string(c.usable()) + " CPUs that this process may use";
  }
  if (f.threads_asked != 0) return "as requested";
  if (c.quota != 0 && c.quota < c.affinity) {
    return "the cgroup's quota grants " + std::to_string(c.quota) + " of " + online + " CPUs";
  }
  if (c.affinity < c.online) return "the affinity mask has " + std::to_string(c.affinity) + " of " + online + " CPUs";
  return "one for each of the machine's CPUs";
}

std::string fixed(double number, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << number;
  return text.str();
}

std::string size_text(std::uint64_t bytes) {
  const auto mib = static_cast<double>(bytes) / (1 << 20);
  return mib < 1024 ? fixed(mib, 1) + " MiB" : fixed(mib / 1024, 1) + " GiB";
}

std::string percent(double share) { return fixed(100 * share, 0) + "%"; }

bool holds(const model::self_check& c) { return c.holds(); }

/// The checks of one target, in the order in which they ran.
std::vector<model::self_check> checks_of(const doctor_findings& f, std::string_view target) {
  std::vector<model::self_check> own;
  for (const model::self_check& c : f.checks) {
    if (c.target == target) own.push_back(c);
  }
  return own;
}

/// Begins a line, with a label at the beginning of a section.
std::ostream& line(std::ostream& out, std::string_view label = "") {
  return out << std::left << std::setw(10) << label;
}

void print_machine(const doctor_findings& f, std::ostream& out) {
  line(out, "cpu") << kernels::cpu_name() << "\n";
  line(out) << "offers " << joined(feature_names()) << "\n";
  line(out, "threads") << f.threads() << ": " << thread_reason(f) << "\n";
  line(out, "memory") << size_text(f.memory.total_bytes) << ", " << size_text(f.memory.available_bytes)
                      << " available, "
                      << (f.memory.cgroup_bytes == 0 ? "no cgroup limit"
                                                     : "cgroup limit " + size_text(f.memory.cgroup_bytes))
                      << ", huge pages: " << f.memory.huge_pages << "\n";
  if (f.memory.swap_bytes != 0) {
    line(out) << "swap is on (" << size_text(f.memory.swap_bytes)
              << "): the system may swap out weights that are not in use\n";
  }
}

void print_targets(const doctor_findings& f, std::ostream& out) {
  std::string_view label = "targets";
  const std::string_view how = f.target.by_environment ? ", chosen by REDLINE_TARGET" : ", chosen as the best";
  for (const kernels::target_info& t : kernels::list_targets()) {
    line(out, label) << std::setw(13) << t.name;
    label = "";
    if (t.table == nullptr) {
      out << "not supported: this CPU lacks " << t.missing << "\n";
    } else {
      out << "runs" << (t.table == f.target.table ? how : "") << "\n";
    }
  }
  if (f.target.table == nullptr) line(out) << "no target chosen: " << f.target.problem << "\n";
}

void print_bounds(const doctor_findings& f, std::ostream& out) {
  std::string_view label = "bounds";
  for (const measured_bounds& b : f.bounds) {
    line(out, label) << b.threads << (b.threads == 1 ? " thread: " : " threads: ")
                     << fixed(b.reached.read_bytes_per_second / 1e9, 1) << " GB/s read, "
                     << fixed(b.reached.product_flops_per_second / 1e9, 0) << " Gop/s products with scales, "
                     << fixed(b.reached.float_flops_per_second / 1e9, 0) << " GFLOP/s float multiply-add\n";
    label = "";
  }
}

void print_checks(const doctor_findings& f, std::ostream& out) {
  std::string_view label = "exactness";
  for (const kernels::target_info& t : kernels::list_targets()) {
    if (t.table == nullptr) continue;
    const auto checks = checks_of(f, t.name);
    const auto held = std::count_if(checks.begin(), checks.end(), holds);
    line(out, label) << std::setw(13) << t.name << held << " of " << checks.size() << " checks passed\n";
    label = "";
    for (const model::self_check& c : checks) {
      if (!c.holds()) line(out) << "  FAILED " << c.claim << ": " << c.problem << "\n";
    }
  }
  if (!f.checks_problem.empty()) line(out) << "FAILED " << f.checks_problem << "\n";
  line(out) << "in " << fixed(f.checks_seconds, 1) << " s\n";
}

void print_model(const doctor_findings& f, std::ostream& out) {
  const model_findings& m = *f.model;
  line(out, "model") << m.path << "\n";
  if (!m.config.family_name().empty()) {
    std::vector<std::string> formats;
    for (const auto& [name, bytes] : m.file_bytes) formats.push_back(name + " " + size_text(bytes));
    line(out) << m.config.family_name() << ", " << m.config.layers << " layers, context " << m.config.context << ", "
              << joined(formats) << "\n";
    line(out) << "needs " << size_text(m.weight_bytes) << " for weights, and for 1,000 tokens";
    for (const model::kv_type kv : kernels::all_element_types) {
      out << (kv == model::kv_type::f32 ? " " : ", ") << size_text(m.kv_bytes[static_cast<std::size_t>(kv)]) << " ("
          << name_of(kv) << ")";
    }
    out << "; this process may use " << size_text(f.memory.usable_bytes()) << "\n";
    if (m.context_bytes != 0) {
      line(out) << "one sequence of the whole context takes " << size_text(m.context_bytes) << " (f16)\n";
    }
    if (m.held.resident_bytes != 0) {
      line(out) << "loaded: " << size_text(m.held.huge_bytes) << " of " << size_text(m.held.resident_bytes)
                << " are in huge pages\n";
    }
  }
  if (!m.numerics.empty()) line(out) << "numerics: " << m.numerics << "\n";
  for (const forward_cell& c : m.cells) {
    const kernels::machine_bounds& b = f.bounds.back().reached;
    line(out) << c.rows << (c.rows == 1 ? " row: " : " rows: ") << fixed(c.best_ms, 2) << " ms at best, "
              << fixed(c.median_ms, 2) << " ms in the median; " << percent(c.of_read_bound(b)) << " of the read bound"
              << (c.of_read_bound(b) > 1 ? " (from caches)" : "") << ", " << percent(c.of_arithmetic_bound(b))
              << " of the arithmetic bound\n";
  }
  if (!m.problem.empty()) line(out) << "FAILED " << m.problem << "\n";
}

ordered_json json_of_targets(const doctor_findings& f) {
  ordered_json all = ordered_json::array();
  for (const kernels::target_info& t : kernels::list_targets()) {
    all.push_back({{"name", t.name},
                   {"runs", t.table != nullptr},
                   {"lacks", t.missing},
                   {"chosen", t.table != nullptr && t.table == f.target.table}});
  }
  return all;
}

ordered_json json_of_bounds(const doctor_findings& f) {
  ordered_json all = ordered_json::array();
  for (const measured_bounds& b : f.bounds) {
    all.push_back({{"threads", b.threads},
                   {"read_gb_per_second", b.reached.read_bytes_per_second / 1e9},
                   {"product_gops", b.reached.product_flops_per_second / 1e9},
                   {"gflops", b.reached.float_flops_per_second / 1e9}});
  }
  return all;
}

ordered_json json_of_checks(const doctor_findings& f) {
  ordered_json all = ordered_json::array();
  for (const model::self_check& c : f.checks) {
    all.push_back({{"target", c.target}, {"claim", c.claim}, {"holds", c.holds()}, {"problem", c.problem}});
  }
  return all;
}

ordered_json json_of_model(const doctor_findings& f) {
  const model_findings& m = *f.model;
  ordered_json out = {{"path", m.path}, {"problem", m.problem}};
  if (!m.config.family_name().empty()) {
    out["architecture"] = m.config.family_name();
    out["layers"] = m.config.layers;
    out["context"] = m.config.context;
    out["file_bytes"] = m.file_bytes;
    out["weight_bytes"] = m.weight_bytes;
    out["resident_bytes"] = m.held.resident_bytes;
    out["huge_page_bytes"] = m.held.huge_bytes;
    for (const model::kv_type kv : kernels::all_element_types) {
      out["kv_bytes_per_1000_tokens"][std::string(name_of(kv))] = m.kv_bytes[static_cast<std::size_t>(kv)];
    }
    out["kv_bytes_of_context"] = m.context_bytes;
  }
  out["numerics"] = m.numerics;
  out["passes"] = ordered_json::array();
  for (const forward_cell& c : m.cells) {
    const kernels::machine_bounds& b = f.bounds.back().reached;
    out["passes"].push_back({{"rows", c.rows},
                             {"ms", c.best_ms},
                             {"median_ms", c.median_ms},
                             {"of_read_bound", c.of_read_bound(b)},
                             {"of_arithmetic_bound", c.of_arithmetic_bound(b)}});
  }
  return out;
}

}  // namespace

bool doctor_findings::healthy() const {
  return target.table != nullptr && checks_problem.empty() && std::all_of(checks.begin(), checks.end(), holds) &&
         (!model || model->problem.empty());
}

void print_findings(const doctor_findings& f, std::ostream& out) {
  print_machine(f, out);
  print_targets(f, out);
  print_bounds(f, out);
  print_checks(f, out);
  if (f.model) print_model(f, out);
  out << (f.healthy() ? "all checks passed\n" : "FAILED, see above\n");
}

ordered_json json_of(const doctor_findings& f) {
  ordered_json out = {{"healthy", f.healthy()},
                      {"cpu", {{"name", kernels::cpu_name()}, {"features", feature_names()}}},
                      {"threads",
                       {{"used", f.threads()},
                        {"reason", thread_reason(f)},
                        {"online", f.cpus.online},
                        {"affinity", f.cpus.affinity},
                        {"cgroup_quota", f.cpus.quota}}},
                      {"memory",
                       {{"total_bytes", f.memory.total_bytes},
                        {"available_bytes", f.memory.available_bytes},
                        {"swap_bytes", f.memory.swap_bytes},
                        {"cgroup_bytes", f.memory.cgroup_bytes},
                        {"huge_pages", f.memory.huge_pages}}},
                      {"targets", json_of_targets(f)},
                      {"target_problem", f.target.problem},
                      {"bounds", json_of_bounds(f)},
                      {"checks", json_of_checks(f)},
                      {"checks_problem", f.checks_problem},
                      {"checks_seconds", f.checks_seconds}};
  if (f.model) out["model"] = json_of_model(f);
  return out;
}

}  // namespace redline::actors::cli
