#pragma once

#include <string>

namespace redline::kernels {

/// What this CPU can execute *and* the operating system saves on a context switch; false on other architectures.
struct cpu_features {
  bool avx2 = false;    // with FMA and F16C
  bool avx512 = false;  // F, BW, DQ, VL
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  bool amx_bf16 = false;  // tile state is available; using it still needs the process's permission
  bool amx_int8 = false;
  bool neon = false;
  bool neon_dotprod = false;  // SDOT, UDOT
  bool neon_i8mm = false;     // SMMLA, USDOT
};

/// Queried once per process.
const cpu_features& this_cpu();

/// The name that the CPU reports; "unknown" if it has none.
std::string cpu_name();

#if defined(__x86_64__)
/// Requests the AMX tile state for this process from the operating system. Returns false if there is none.
bool permit_amx();
#endif

}  // namespace redline::kernels
