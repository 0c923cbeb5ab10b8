#include "kernels/cpu_features.hpp"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace redline::kernels {
namespace {

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

}  // namespace

const cpu_features& this_cpu() {
  static const cpu_features features = detect();
  return features;
}

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

}  // namespace redline::kernels
