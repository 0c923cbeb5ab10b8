#include "tests/support/missing_instructions.hpp"

#include <cpuid.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

#include "kernels/machine/cpu_features.hpp"
#include "kernels/targets/tables.hpp"

namespace redline::test {
namespace {

using byte_view = const std::uint8_t*;
using lanes = std::array<std::uint32_t, 16>;

struct place {
  std::size_t begin, size;
};
/// The position of XSAVE's components. It is determined once, because CPUID is slow in a virtual machine.
const std::array<place, 8>& components() {
  static const std::array<place, 8> all = [] {
    std::array<place, 8> found{};
    for (unsigned number = 2; number < found.size(); ++number) {
      unsigned size = 0, begin = 0, c = 0, d = 0;
      __get_cpuid_count(0xd, number, &size, &begin, &c, &d);
      found[number] = {begin, size};
    }
    found[1] = {160, 256};  // the lowest quarters, which are at FXSAVE's position
    return found;
  }();
  return all;
}

// ---- the interrupted thread's registers ----------------------------------------------------------------------------

/// The registers in a signal frame, as XSAVE lays them out.
class saved_registers {
 public:
  explicit saved_registers(ucontext_t& context)
      : general_(context.uc_mcontext.gregs), area_(reinterpret_cast<std::uint8_t*>(context.uc_mcontext.fpregs)) {}

  [[nodiscard]] std::uint64_t general(unsigned number) const {
    static constexpr int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return static_cast<std::uint64_t>(general_[order[number]]);
  }
  [[nodiscard]] byte_view instruction() const { return reinterpret_cast<byte_view>(general_[REG_RIP]); }
  void go_on_at(byte_view next) { general_[REG_RIP] = reinterpret_cast<greg_t>(next); }

  [[nodiscard]] lanes vector(unsigned number) {
    lanes v{};
    for (const part& p : parts_of(number)) std::memcpy(bytes_of(v) + p.to, area_ + p.from, p.count);
    return v;
  }
  void set_vector(unsigned number, lanes v) {
    for (const part& p : parts_of(number)) std::memcpy(area_ + p.from, bytes_of(v) + p.to, p.count);
  }
  /// Returns one bit per lane; k0 means all lanes.
  [[nodiscard]] std::uint32_t mask(unsigned number) {
    std::uint32_t bits = 0xffffffff;
    if (number != 0) std::memcpy(&bits, area_ + component(5).begin + 8 * number, sizeof(bits));
    return bits;
  }

 private:
  struct part {
    std::size_t to, from, count;
  };
  static std::uint8_t* bytes_of(lanes& v) { return reinterpret_cast<std::uint8_t*>(v.data()); }

  /// Writes out a component that is in its initial state, so that its parts can be set.
  place component(unsigned number) {
    const place p = components()[number];
    constexpr std::size_t header = 512;
    std::uint64_t in_use = 0;
    std::memcpy(&in_use, area_ + header, sizeof(in_use));
    if ((in_use >> number & 1) == 0) {
      std::memset(area_ + p.begin, 0, p.size);
      in_use |= std::uint64_t{1} << number;
      std::memcpy(area_ + header, &in_use, sizeof(in_use));
    }
    return p;
  }
  std::array<part, 3> parts_of(unsigned number) {
    if (number >= 16) return {{{0, component(7).begin + 64 * (number - 16), 64}}};
    return {{{0, component(1).begin + 16 * number, 16},
             {16, component(2).begin + 16 * number, 16},
             {32, component(6).begin + 32 * number, 32}}};
  }

  greg_t* general_;
  std::uint8_t* area_;
};

// ---- decoding ------------------------------------------------------------------------------------------------------

struct instruction {
  unsigned map = 0, prefix = 0, opcode = 0;  // prefix: 0, 1 (66), 2 (F3) or 3 (F2)
  unsigned reg = 0, rm = 0, second = 0;      // register numbers; rm only if it is not memory
  std::optional<std::uint64_t> memory;
  std::uint64_t stride = 0;  // value of a tile load's index register
  unsigned mask = 0;
  bool zeroing = false, broadcast = false, evex = false, wide = false;  // wide: the VEX form with 256 bits
  byte_view next = nullptr;
};

/// Reads ModRM and the bytes that belong to it. `scale` is the unit of an EVEX displacement of one byte.
void read_operand(byte_view p, saved_registers& r, unsigned high_x, unsigned high_b, unsigned scale, instruction& out) {
  const unsigned modrm = *p++;
  const unsigned mod = modrm >> 6;
  out.reg |= modrm >> 3 & 7;
  if (mod == 3) {
    out.rm = (modrm & 7) | high_b << 3 | high_x << 4;
    out.next = p;
    return;
  }
  std::uint64_t address = 0;
  const bool has_index = (modrm & 7) == 4;
  unsigned base = modrm & 7;
  if (has_index) {
    const unsigned sib = *p++;
    base = sib & 7;
    const unsigned index = (sib >> 3 & 7) | high_x << 3;
    if (index != 4) {
      out.stride = r.general(index) << (sib >> 6);
      address += out.stride;
    }
  }
  const auto displacement = [&](auto type) {
    decltype(type) d;
    std::memcpy(&d, p, sizeof(d));
    p += sizeof(d);
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(d));
  };
  const bool no_base = mod == 0 && base == 5;
  if (!no_base) address += r.general(base | high_b << 3);
  if (mod == 1) address += displacement(std::int8_t{}) * scale;
  if (mod == 2 || no_base) address += displacement(std::int32_t{});
  if (no_base && !has_index) address += reinterpret_cast<std::uint64_t>(p);  // relative to the next instruction
  out.memory = address;
  out.next = p;
}

std::optional<instruction> decode(saved_registers& r) {
  byte_view p = r.instruction();
  instruction i;
  const auto no = [](unsigned byte, unsigned bit) { return (~byte >> bit) & 1; };
  if (p[0] == 0xc4) {
    i.map = p[1] & 31;
    i.prefix = p[2] & 3;
    i.second = ~p[2] >> 3 & 15;
    i.wide = (p[2] & 4) != 0;
    i.opcode = p[3];
    i.reg = no(p[1], 7) << 3;
    read_operand(p + 4, r, no(p[1], 6), no(p[1], 5), 1, i);
    return i;
  }
  if (p[0] != 0x62) return std::nullopt;
  i.evex = true;
  i.map = p[1] & 7;
  i.prefix = p[2] & 3;
  i.second = (~p[2] >> 3 & 15) | no(p[3], 3) << 4;
  i.opcode = p[4];
  i.mask = p[3] & 7;
  i.zeroing = (p[3] >> 7) != 0;
  i.broadcast = (p[3] >> 4 & 1) != 0;
  i.reg = no(p[1], 7) << 3 | no(p[1], 4) << 4;
  if ((p[3] >> 5 & 3) != 2) return std::nullopt;  // only whole registers of 512 bits are supported
  read_operand(p + 5, r, no(p[1], 6), no(p[1], 5), i.broadcast ? 4 : 64, i);
  return i;
}

// ---- execution ------------------------------------------------------------------------------------------------------

struct tile {
  std::uint32_t words[16][16];
};
thread_local std::array<tile, 8> tiles;

struct tile_shape {
  std::size_t rows = 16;
  std::size_t row_bytes = 64;
};
thread_local std::array<tile_shape, 8> shapes;

/// Reads the configuration as LDTILECFG does: bytes per row from byte 16 on, rows from byte 48 on.
void configure(byte_view config) {
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    std::uint16_t row_bytes = 0;
    std::memcpy(&row_bytes, config + 16 + 2 * t, sizeof(row_bytes));
    shapes[t] = {config[48 + t], row_bytes};
  }
}

/// TDPBSSD: products of signed bytes.
void multiply_bytes(tile& c, const tile& a, const tile& b, std::size_t words) {
  for (std::size_t m = 0; m < 16; ++m) {
    for (std::size_t k = 0; k < words; ++k) {
      for (std::size_t n = 0; n < 16; ++n) {
        std::int32_t sum = 0;
        for (int byte = 0; byte < 4; ++byte) {
          sum += static_cast<std::int8_t>(a.words[m][k] >> 8 * byte & 255) *
                 static_cast<std::int8_t>(b.words[k][n] >> 8 * byte & 255);
        }
        c.words[m][n] += static_cast<std::uint32_t>(sum);
      }
    }
  }
}

// Not inlined, because its arithmetic must stay between the two changes of MXCSR.
[[gnu::noinline, gnu::target("avx512f,avx2,fma")]] void multiply_sums(tile& c, const tile& a, const tile& b) {
  for (int m = 0; m < 16; ++m) {
    float even[16] = {};
    float odd[16] = {};
    for (int k = 0; k < 16; ++k) {
      const float x = std::bit_cast<float>(a.words[m][k] << 16);
      const float y = std::bit_cast<float>(a.words[m][k] & 0xffff0000);
      for (int n = 0; n < 16; ++n) {
        even[n] = __builtin_fmaf(x, std::bit_cast<float>(b.words[k][n] << 16), even[n]);
        odd[n] = __builtin_fmaf(y, std::bit_cast<float>(b.words[k][n] & 0xffff0000), odd[n]);
      }
    }
    for (int n = 0; n < 16; ++n) {
      const float sum = std::bit_cast<float>(c.words[m][n]) + (even[n] + odd[n]);
      c.words[m][n] = std::bit_cast<std::uint32_t>(sum);
    }
  }
}
/// Denormal numbers count as zero and exceptions are silent, whatever the thread's own MXCSR contains.
void multiply(tile& c, const tile& a, const tile& b) {
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(0x9fc0);
  multiply_sums(c, a, b);
  __builtin_ia32_ldmxcsr(before);
}

std::uint32_t to_bf16(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return bits >> 16 | 0x40;    // a quiet NaN
  if (magnitude < 0x00800000) return bits >> 16 & 0x8000;  // zero, or a denormal number, which counts as zero
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

lanes narrow(const lanes& high, const lanes& low) {
  lanes out{};
  for (std::size_t i = 0; i < 32; ++i) {
    out[i / 2] |= to_bf16(i < 16 ? low[i] : high[i - 16]) << (i % 2 * 16);
  }
  return out;
}

using half = _Float16;
half half_of(std::uint32_t bits) { return std::bit_cast<half>(static_cast<std::uint16_t>(bits)); }
/// Rounds once: the sum is exact in 113 bits.
half fused(half a, half b, half c) {
  return static_cast<half>(static_cast<__float128>(a) * static_cast<__float128>(b) + static_cast<__float128>(c));
}

lanes multiply_complex(const lanes& a, const lanes& b) {
  lanes out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const half ar = half_of(a[i]), ai = half_of(a[i] >> 16), br = half_of(b[i]), bi = half_of(b[i] >> 16);
    const half real = fused(static_cast<half>(-ai), bi, fused(ar, br, 0));
    const half imaginary = fused(ar, bi, fused(ai, br, 0));
    out[i] = std::uint32_t{std::bit_cast<std::uint16_t>(imaginary)} << 16 | std::bit_cast<std::uint16_t>(real);
  }
  return out;
}

lanes third_operand(const instruction& i, saved_registers& r) {
  if (!i.memory) return r.vector(i.rm);
  lanes v{};
  std::memcpy(v.data(), reinterpret_cast<const void*>(*i.memory), i.broadcast ? 4 : 64);
  if (i.broadcast) v.fill(v[0]);
  return v;
}

/// lane_bits: the width of a lane, which has one mask bit.
void write_masked(const instruction& i, saved_registers& r, const lanes& v, unsigned lane_bits) {
  lanes out = i.zeroing ? lanes{} : r.vector(i.reg);
  const std::uint32_t mask = r.mask(i.mask);
  const std::size_t lane_bytes = lane_bits / 8;
  for (std::size_t lane = 0; lane < 64 / lane_bytes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    std::memcpy(reinterpret_cast<std::byte*>(out.data()) + lane * lane_bytes,
                reinterpret_cast<const std::byte*>(v.data()) + lane * lane_bytes, lane_bytes);
  }
  r.set_vector(i.reg, out);
}

bool execute_on_tiles(const instruction& i) {
  constexpr unsigned none = 0, f3 = 2, f2 = 3;
  tile& t = tiles[i.reg & 7];
  const tile_shape shape = shapes[i.reg & 7];
  const auto row = [&](std::size_t number) {
    // The index register is the stride, and the address already includes it once.
    return reinterpret_cast<std::uint8_t*>(*i.memory - i.stride) + number * i.stride;
  };
  if (i.opcode == 0x49 && i.prefix == none) {
    tiles = {};  // LDTILECFG and TILERELEASE
    if (i.memory) configure(reinterpret_cast<byte_view>(*i.memory));
  } else if (i.opcode == 0x49 && i.prefix == f2 && !i.memory) {
    t = {};
  } else if (i.opcode == 0x4b && i.prefix == f2 && i.memory) {
    t = {};
    for (std::size_t n = 0; n < shape.rows; ++n) std::memcpy(t.words[n], row(n), shape.row_bytes);
  } else if (i.opcode == 0x4b && i.prefix == f3 && i.memory) {
    for (std::size_t n = 0; n < shape.rows; ++n) std::memcpy(row(n), t.words[n], shape.row_bytes);
  } else if (i.opcode == 0x5c && i.prefix == f3 && !i.memory) {
    multiply(t, tiles[i.rm & 7], tiles[i.second & 7]);
  } else if (i.opcode == 0x5e && i.prefix == f2 && !i.memory) {
    multiply_bytes(t, tiles[i.rm & 7], tiles[i.second & 7], shapes[i.rm & 7].row_bytes / 4);
  } else {
    return false;
  }
  return true;
}

/// Adds the products of four unsigned bytes of `a` and four signed ones of `b` to each lane of `sums`.
lanes add_byte_products(lanes sums, const lanes& a, const lanes& b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    for (int byte = 0; byte < 4; ++byte) {
      const auto u = static_cast<std::int32_t>(a[i] >> 8 * byte & 255);
      const std::int32_t s = static_cast<std::int8_t>(b[i] >> 8 * byte & 255);
      sums[i] += static_cast<std::uint32_t>(u * s);
    }
  }
  return sums;
}

/// VPDPBUSD on eight lanes.
bool execute_vex_on_vectors(const instruction& i, saved_registers& r) {
  constexpr unsigned p66 = 1;
  if (i.prefix != p66 || i.opcode != 0x50 || !i.wide) return false;
  lanes factors{};
  if (i.memory) {
    std::memcpy(factors.data(), reinterpret_cast<const void*>(*i.memory), 32);
  } else {
    factors = r.vector(i.rm & 15);
  }
  lanes out = add_byte_products(r.vector(i.reg), r.vector(i.second), factors, 8);
  std::fill(out.begin() + 8, out.end(), 0);
  r.set_vector(i.reg, out);
  return true;
}

bool execute_on_vectors(const instruction& i, saved_registers& r) {
  constexpr unsigned f3 = 2, f2 = 3;
  if (i.map == 2 && i.prefix == f2 && i.opcode == 0x72) {
    write_masked(i, r, narrow(r.vector(i.second), third_operand(i, r)), 16);
  } else if (i.map == 6 && i.prefix == f3 && i.opcode == 0xd6) {
    write_masked(i, r, multiply_complex(r.vector(i.second), third_operand(i, r)), 32);
  } else {
    return false;
  }
  return true;
}

void on_illegal_instruction(int number, siginfo_t*, void* context) {
  saved_registers r(*static_cast<ucontext_t*>(context));
  const auto i = decode(r);
  const auto executes_vex = [&] { return i->map == 2 && (execute_on_tiles(*i) || execute_vex_on_vectors(*i, r)); };
  if (i && (i->evex ? execute_on_vectors(*i, r) : executes_vex())) {
    r.go_on_at(i->next);
    return;
  }
  signal(number, SIG_DFL);  // the signal is raised again and ends the process
}

bool install() {
  static const bool installed = [] {
    (void)components();
    struct sigaction action = {};
    action.sa_sigaction = on_illegal_instruction;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGILL, &action, nullptr) == 0;
  }();
  return installed;
}

}  // namespace

kernels::table_choice choose_table_or_emulate(std::string_view target) {
  auto choice = kernels::choose_table(target);
  if (choice.table != nullptr || !kernels::this_cpu().avx512) return choice;
  const bool installed = install();
  if (installed && target == "amx") choice.table = &kernels::amx_table();
  if (installed && target == "avx512fp16") choice.table = &kernels::avx512fp16_table();
  return choice;
}

kernels::table_choice choose_int8_table_or_emulate(std::string_view target) {
  auto choice = kernels::choose_table(target);
  if (choice.table != nullptr) {
    choice.table = kernels::int8_table_of(*choice.table);
  } else if (kernels::this_cpu().avx512 && install()) {
    if (target == "amx") choice.table = &kernels::amx_int8_table();
    if (target == "avxvnni") choice.table = &kernels::avxvnni_int8_table();
  }
  return choice;
}

}  // namespace redline::test
