#include "kernels/machine/cpu_features.hpp"

#include <cstdint>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#else
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include <algorithm>
#include <iterator>
#endif

namespace redline::kernels {
namespace {

#if defined(__x86_64__)

struct registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

registers cpuid(unsigned leaf, unsigned subleaf) {
  registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

std::uint64_t enabled_state() {
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

constexpr bool bit(std::uint64_t value, unsigned index) { return (value >> index & 1) != 0; }

cpu_features detect() {
  cpu_features f;
  const registers one = cpuid(1, 0);
  constexpr unsigned osxsave = 27;
  if (!bit(one.c, osxsave)) return f;
  const std::uint64_t state = enabled_state();
  const bool ymm = (state & 0x6) == 0x6;           // SSE and AVX
  const bool zmm = ymm && (state & 0xe0) == 0xe0;  // opmask, upper halves, upper registers
  const bool tiles = (state & 0x60000) == 0x60000;

  const registers seven = cpuid(7, 0);
  const registers seven_one = seven.a >= 1 ? cpuid(7, 1) : registers{};
  f.avx2 = ymm && bit(one.c, 28) && bit(one.c, 12) && bit(one.c, 29) && bit(seven.b, 5);
  f.avx512 = f.avx2 && zmm && bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 30) && bit(seven.b, 31);
  f.avx512_vnni = f.avx512 && bit(seven.c, 11);
  f.avx512_bf16 = f.avx512 && bit(seven_one.a, 5);
  f.avx512_fp16 = f.avx512 && bit(seven.d, 23);
  f.amx_bf16 = tiles && bit(seven.d, 24) && bit(seven.d, 22);
  f.amx_int8 = tiles && bit(seven.d, 24) && bit(seven.d, 25);
  return f;
}

#else

cpu_features detect() {
  cpu_features f;
  f.neon = true;  // part of the architecture
  f.neon_dotprod = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  f.neon_i8mm = f.neon_dotprod && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
  return f;
}

/// A core by its main identification register, because these CPUs have no name.
struct known_core {
  unsigned implementer;
  unsigned part;
  const char* name;
};
constexpr known_core known_cores[] = {
    {0x41, 0xd03, "Arm Cortex-A53"},     {0x41, 0xd05, "Arm Cortex-A55"},  {0x41, 0xd08, "Arm Cortex-A72"},
    {0x41, 0xd0b, "Arm Cortex-A76"},     {0x41, 0xd0c, "Arm Neoverse N1"}, {0x41, 0xd40, "Arm Neoverse V1"},
    {0x41, 0xd49, "Arm Neoverse N2"},    {0x41, 0xd4f, "Arm Neoverse V2"}, {0x41, 0xd84, "Arm Neoverse V3"},
    {0x41, 0xd8e, "Arm Neoverse N3"},    {0xc0, 0xac3, "Ampere One"},      {0x61, 0x022, "Apple M1 Icestorm"},
    {0x61, 0x023, "Apple M1 Firestorm"},
};

#endif

}  // namespace

const cpu_features& this_cpu() {
  static const cpu_features features = detect();
  return features;
}

#if defined(__x86_64__)

std::string cpu_name() {
  constexpr unsigned first_leaf = 0x80000002;
  std::array<char, 3 * sizeof(registers) + 1> text{};
  for (unsigned i = 0; i < 3; ++i) {
    const registers r = cpuid(first_leaf + i, 0);
    std::memcpy(text.data() + i * sizeof(r), &r, sizeof(r));
  }
  const std::string padded = text.data();
  const auto begin = padded.find_first_not_of(' ');
  if (begin == std::string::npos) return "unknown";
  return padded.substr(begin, padded.find_last_not_of(' ') - begin + 1);
}

bool permit_amx() {
  if (!this_cpu().amx_bf16 && !this_cpu().amx_int8) return false;
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long tile_data = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

#else

std::string cpu_name() {
  if ((getauxval(AT_HWCAP) & HWCAP_CPUID) == 0) return "unknown";  // the system does not allow reading the register
  std::uint64_t id = 0;
  __asm__("mrs %0, MIDR_EL1" : "=r"(id));
  const unsigned implementer = id >> 24 & 0xff;
  const unsigned part = id >> 4 & 0xfff;
  const auto* known = std::find_if(std::begin(known_cores), std::end(known_cores),
                                   [&](const known_core& c) { return c.implementer == implementer && c.part == part; });
  if (known != std::end(known_cores)) return known->name;
  const auto hex = [](unsigned number, int digits) {
    std::string text = "0x";
    while (digits-- > 0) text += "0123456789abcdef"[number >> 4 * digits & 15];
    return text;
  };
  return "aarch64 implementer " + hex(implementer, 2) + " part " + hex(part, 3);
}

#endif

}  // namespace redline::kernels
