#include "kernels/dispatch.hpp"

#include <cstdlib>

#include "kernels/blas.hpp"
#include "kernels/machine/cpu_features.hpp"
#include "kernels/targets/tables.hpp"

namespace redline::kernels {

const std::vector<target_info>& list_targets() {
  static const std::vector<target_info> targets = [] {
    std::vector<target_info> all;
    const auto add = [&all](const kernel_table& table, bool runs, std::string_view missing) {
      all.push_back({table.name, runs ? &table : nullptr, runs ? std::string_view{} : missing});
    };
#if defined(__x86_64__)
    const cpu_features& cpu = this_cpu();
    if (amx_is_built()) {
      add(amx_table(), cpu.amx_bf16 && cpu.avx512_bf16 && permit_amx() && amx_multiplies(),
          "AMX-BF16 with AVX-512 BF16, or the system does not permit its use");
    }
    add(avx512vnni_table(), cpu.avx512_vnni, "AVX-512 VNNI");
    add(avx512_table(), cpu.avx512, "AVX-512 F, BW, DQ and VL");
    add(avx2_table(), cpu.avx2, "AVX2, FMA and F16C");
    add(blas_table(), true, {});
#else
    add(neon_table(), true, {});
#endif
    add(scalar_table(), true, {});
#if defined(__x86_64__)
    // After avx512, so that it is never the default: its keys drift further with each rotation.
    add(avx512fp16_table(), cpu.avx512_fp16, "AVX-512 FP16");
    if (amx_is_built()) add(amx_emulated_table(), cpu.avx512, "AVX-512 F, BW, DQ and VL");
#endif
    return all;
  }();
  return targets;
}

table_choice choose_table(std::optional<std::string_view> forced) {
  std::string known;
  for (const target_info& target : list_targets()) {
    if (!forced && target.table != nullptr) return {.table = target.table};
    if (forced && target.name == *forced) {
      if (target.table != nullptr) return {.table = target.table};
      return {.problem = "kernel target '" + std::string(*forced) + "': this CPU lacks " + std::string(target.missing)};
    }
    known += (known.empty() ? "" : ", ") + std::string(target.name);
  }
  return {.problem = "kernel target '" + std::string(forced.value_or("")) + "': expected one of " + known};
}

const table_choice& process_table() {
  static const table_choice choice = [] {
    const char* forced = std::getenv("REDLINE_TARGET");
    if (forced == nullptr || *forced == '\0') return choose_table(std::nullopt);
    table_choice chosen = choose_table(forced);
    chosen.by_environment = true;
    if (chosen.table == nullptr) chosen.problem = "REDLINE_TARGET: " + chosen.problem;
    return chosen;
  }();
  return choice;
}

}  // namespace redline::kernels
