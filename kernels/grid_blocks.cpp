#include "kernels/grid_blocks.hpp"

#include <bit>
#include <cstring>

#include "kernels/half_floats.hpp"

namespace redline::kernels {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied out of blocks as they lie in memory");

// ---- the grids

/// The set of a lattice's points that are on a grid: bit c stands for the point whose coordinates are the digits of c
/// in base Levels, the lowest digit first. A block identifies a point by the number of set bits before it.
template<unsigned Levels, std::size_t Dimensions>
constexpr std::size_t lattice_points{Levels * lattice_points<Levels, Dimensions - 1>};
template<unsigned Levels>
constexpr std::size_t lattice_points<Levels, 0> = 1;
template<unsigned Levels, std::size_t Dimensions>
using point_set = std::array<std::uint64_t, (lattice_points<Levels, Dimensions> + 63) / 64>;

constexpr point_set<3, 8> iq2_xxs_set = {
    0x4141441055141555, 0x0000100044140400, 0x0040001400400400, 0x1050000004000000, 0x4004140100114140,
    0x0500001000400450, 0x0001000050000010, 0x4004144100004000, 0x0400000400001414, 0x0000000000040000,
    0x0000000000100400, 0x0010100414000000, 0x1001040011040040, 0x0000000100404000, 0x0000000004010000,
    0x0000400440041000, 0x0000100000000004, 0x1000400000001000, 0x0000000000000000, 0x0040000004000105,
    0x0000000000110000, 0x0000000001000000, 0x0414000000000040, 0x0000050100010000, 0x0000001010000000,
    0x0000000000500000, 0x0000414000000000, 0x0040000000004001, 0x0000004000040000, 0x0000000000000000,
    0x0000040040000040, 0x0000000004000000, 0x0000000000000000, 0x0000000001000000, 0x0110104144105000,
    0x0000400010000414, 0x0040400000440400, 0x4000000100404000, 0x0010000000010010, 0x0000001004000010,
    0x0000000100000000, 0x0414000000000000, 0x0000000000011000, 0x0401100000000004, 0x0004000000000000,
    0x0050441000040000, 0x0100000104000000, 0x0000000000040000, 0x0000000000000001, 0x0000000000000040,
    0x0001000001400000, 0x0400000000000000, 0x0000000100000000, 0x0400000004100400, 0x0040000000000000,
    0x0004000000000000, 0x0000000000000000, 0x0001000001000041, 0x0040000000004000, 0x0000400000000000,
    0x0011000000001000, 0x0000000000000000, 0x0400000000001400, 0x0000000000000000, 0x0000000000000000,
    0x0000000000000001, 0x0000000000000000, 0x0000000000000000, 0x0004000041400000, 0x0040040000004000,
    0x0000000000000004, 0x0000000000000004, 0x0040001000441400, 0x0400000004000000, 0x0004000010000000,
    0x4000000001000040, 0x0000000000000000, 0x0000000000010000, 0x0000010000000000, 0x0104000000000000,
    0x0100000000000410, 0x0040000000004000, 0x0001000000000000, 0x0040000400000000, 0x0000000000000001,
    0x0000000001000000, 0x0000000000000000, 0x0000000000000000, 0x0100000000001000, 0x0000000000000000,
    0x0000000000000000, 0x0000100000000400, 0x0000000100000004, 0x0000040000000000, 0x0000000000000000,
    0x0000000000000400, 0x0000000000000000, 0x0000000000000000, 0x0000000000000000, 0x0000000000040000,
    0x0000000000000004, 0x0000000000000000, 0x0000000000000000};
constexpr point_set<3, 8> iq2_xs_set = {
    0x1541455551555555, 0x4145505555540145, 0x4010515400010510, 0x5550000101000441, 0x0004140115154145,
    0x0404010500414550, 0x0005100041400000, 0x1105554000004000, 0x0540400010010414, 0x0010400000040001,
    0x0000000104000100, 0x4550515554011000, 0x1051540001054041, 0x5000500100004140, 0x0000010000400011,
    0x1001450041455000, 0x0100004140000004, 0x0400400000000000, 0x0000000000010000, 0x0400004004000505,
    0x0000000000110000, 0x0000000000000004, 0x5555000000000040, 0x0400010000414010, 0x0010001040001050,
    0x0000010000100000, 0x4000414400000400, 0x0040000000000001, 0x1000000010040000, 0x0000000001000100,
    0x0000040141100000, 0x0000000400100001, 0x0000010010000000, 0x0144000000001001, 0x1105554145555000,
    0x0500414550000414, 0x0141404000440001, 0x4000000000000140, 0x0010000414014515, 0x0000041001050001,
    0x4000010100400000, 0x0414000000000010, 0x0000000101011000, 0x0040004100001004, 0x0000000000400000,
    0x1041455000000000, 0x4140000004000105, 0x0000000000050004, 0x0000001000000040, 0x0004040105400000,
    0x0000410100004010, 0x0000001040000000, 0x0000100000001000, 0x0000404000400404, 0x0140100000010000,
    0x0000000000000000, 0x4000004000000000, 0x0100101001000041, 0x0000000000005000, 0x0010000000000000,
    0x4001000100000004, 0x0000000000000000, 0x0000000110000400, 0x0000000000001000, 0x0000001000000000,
    0x0000000001000000, 0x0000000000000400, 0x0010100000000400, 0x0415010515400000, 0x0001155000005000,
    0x0100000000041004, 0x0001400000000400, 0x0040001000541441, 0x0100000004000040, 0x0400004000000000,
    0x1000000100000000, 0x0014010000040004, 0x0000000000040400, 0x0004000000000000, 0x0105100404100000,
    0x0000010001000400, 0x0001000000100001, 0x0400000000000000, 0x0000004400004000, 0x0000000000001041,
    0x0014000000001000, 0x0000000100000000, 0x0400000000000000, 0x0000000400000000, 0x0000000000000100,
    0x0000001000000010, 0x0000000404014500, 0x4000000000010000, 0x0001144000000010, 0x0004000100000010,
    0x4000000000400000, 0x0000000000000000, 0x0000000000000000, 0x0040000400004000, 0x1040000000000045,
    0x0500000000000004, 0x0000050000000000, 0x0000000100010000};
constexpr point_set<3, 8> iq2_s_set = {
    0x1555455551555555, 0x5545505155551105, 0x5010515414150514, 0x5550101111000455, 0x5145541555555545,
    0x5414555514555550, 0x1451000455401051, 0x1155154000105004, 0x0540010110515555, 0x0040401051440455,
    0x0000100510140100, 0x4551515554004000, 0x5555541451151555, 0x5000145505155545, 0x0414000504414114,
    0x1455551455455000, 0x5505155540105154, 0x0514400010500414, 0x4000001000041401, 0x0140105154045155,
    0x0010500414550000, 0x1000041004000010, 0x5154000000000400, 0x0011010405415115, 0x1401050540415054,
    0x0104510010100004, 0x0514554400050000, 0x1440001050041455, 0x0000110004140105, 0x0004000400010500,
    0x1050001411000000, 0x0004150000400000, 0x0000100000000000, 0x0140040000004004, 0x1555554555555000,
    0x5505554550514414, 0x1541401051541455, 0x4000005004145104, 0x4550515554555555, 0x1051541455550041,
    0x5004145500004150, 0x5514100000400010, 0x0001040041455051, 0x0100004140105154, 0x0000400010500040,
    0x1555455000000000, 0x5540005154145555, 0x0010500414550515, 0x1400041401051440, 0x5154145555000000,
    0x0414550000414010, 0x1400000040001050, 0x0000000000110004, 0x0040414010515400, 0x0040001050000001,
    0x1000100000000000, 0x4400004000000000, 0x1040041451051545, 0x0004140105154000, 0x0400010400100010,
    0x1451010000000100, 0x0000004000105004, 0x0010001010000414, 0x0000000000040004, 0x0000105000100000,
    0x0010010000100000, 0x0000000000004000, 0x0000000400000000, 0x5414114515404000, 0x1455450001411011,
    0x1140004140005154, 0x0000000010500015, 0x0041455011555400, 0x4140105154000105, 0x0010500001010000,
    0x1000000000000050, 0x0000000105000141, 0x4000010000014040, 0x0004000000000000, 0x5545010000400500,
    0x0000414010515410, 0x0000101050001411, 0x0000100004140000, 0x4010515440000000, 0x1050004001000041,
    0x1100000000004000, 0x0010001000000010, 0x0001100041400000, 0x0000005000000000, 0x0000000000001100,
    0x0040000000000000, 0x0000105410111100, 0x0010000001040000, 0x4004100000000400, 0x5100014400000014,
    0x0100000000400010, 0x0000000010001040, 0x0000000000000000, 0x0040000000000004, 0x0100000000000040,
    0x0400004000000000, 0x0000011401400000, 0x0000000100001000};
constexpr point_set<3, 8> iq1_set = {
    0x514202a085142555, 0xa28a2086a8314508, 0x14508514202a081a, 0xa005152545442082, 0x8208001888208202,
    0x0aaabb88a02a03a0, 0xaa0a0022000baa90, 0x4508514008a0828c, 0x0851421450808821, 0x2a8008a09808308a,
    0x4248208514214508, 0x20a0c22c01450855, 0xa2aaa8242a00268a, 0x0028280808afe208, 0xa82028aa284202a0,
    0xa8bab9089b0a2080, 0x3aaaaea289aeca20, 0xb80e82bbbaeaeb7c, 0x2202920ed3caba22, 0x820aba8aa8202200,
    0x3ba2e04a2a000802, 0x81408100a22b2022, 0x8514012208288aaa, 0x5421450920821550, 0x203aa8230208a085,
    0xa208514254208284, 0x082a021450950820, 0x200248a08082a8b8, 0xab2802a268a28208, 0x083082082085082a,
    0xa085142145004045, 0x8229014500514200, 0x1430a1082a828a00, 0x2145082882145005, 0x2aaa200202208514,
    0xa828ae8ab1122000, 0x0a820070a8aaa1ba, 0x8200840222280208, 0xaa2ab0eaa0804800, 0xa7daea22ba8b20c2,
    0xaa2ab092a86e8b8b, 0x48202a0c448a8b72, 0x20aa082a8a284084, 0xa09aafa222a2ccc8, 0xa82a00020002a8e8,
    0xa2a28ba080200088, 0xba0a328280a0ba28, 0x2ba0a2ebfebab8be, 0x00a2ea280a8a08a2, 0xdeeaa4fa0c0232a1,
    0xeb7ebe8d2ea82bef, 0xdeba7de6bf7ff7fa, 0x12fa26bfff27fb69, 0x0ebeaa10228ae1e9, 0xae820ba8b208aa84,
    0x62048083e924baff, 0x002ba40aa8f2682c, 0x0012aae208082a02, 0x82c920a60a2a8202, 0x8c00a20028829089,
    0x6c00080882001380, 0x8abea602bbaaaa8a, 0xd02e976b8002caa0, 0xdeaa2e108210e9b2, 0x820a0004a5d11528,
    0x20a1010820828a00, 0xa0843222ba39aa82, 0x0262a28a00188009, 0xac21450051441481, 0x20aa085142145082,
    0x45082a120a87aa28, 0x08514208a0051421, 0x22a240a002200145, 0x8a6a08a208008800, 0x0a200080aaaab86e,
    0x5044082122c8e282, 0x8515208a09514214, 0x2a2aaa080a861450, 0x21450851420a0080, 0xe2085142145000a8,
    0x082a82180a828820, 0x0a028bb08aaaa2aa, 0x0aaa80822820aa2a, 0x220288a900280828, 0xba8a08b8280bbea0,
    0xaef8a4baffaeb24b, 0x30a0b668285220aa, 0x6a220828020a80e6, 0x2baaaa020a208062, 0x0808a2a0a9a2eaaa,
    0x0e8200228aa02010, 0x400aa08514214500, 0x4a0006a921450851, 0x440d1000a50802aa, 0x0514214508288214,
    0x0020f2ac82820800, 0x20ba0a280aaa0000, 0x280948820002a2ea, 0x0051454b110014e9, 0x5142145002a80145,
    0x400a288808248808, 0x02a0051401450008, 0x0000000145085140};
constexpr point_set<8, 4> iq3_xxs_set = {
    0x2800000402058a15, 0x010010020522050a, 0x200082008a050215, 0x0100000000200582, 0x2800801080000800,
    0x0000040004000082, 0x0010000020000000, 0x0002000800005100, 0x00000180150a050a, 0x0000000000050205,
    0x040000000102050a, 0x0040004002010005, 0x0000010000000022, 0x0200004000110000, 0x0000000000000020,
    0x0000000100040000, 0x0000000402450a05, 0x018800000102052a, 0x0000200180058205, 0x1100000000001102,
    0x0000080020000000, 0x1000000200800008, 0x0000000000000000, 0x000000200000400a, 0x04200100000a0502,
    0x0000005002010005, 0x040004000020010a, 0x0000000008000200, 0x0400008001000000, 0x0000200000040041,
    0x0008000040001000, 0x0001000008000000, 0x00008800a0008010, 0x1000000000000000, 0x0041000180010000,
    0x0000002000000080, 0x0010020000000010, 0x0100000800200000, 0x0000000000000000, 0x0000000001000520,
    0x0100000200000400, 0x0000200000400041, 0x0400000004001000, 0x0000080000000004, 0x0400000000880100,
    0x0000000002000004, 0x0000010000000000, 0x0000000400100000, 0x0010005000100000, 0x0002000000020000,
    0x0010000000008000, 0x0000000041000000, 0x0000001000000000, 0x0000040000000020, 0x0000000008000000,
    0x0000000000020008, 0x00000400040001a8, 0x0000000100400000, 0x0000042000000400, 0x0001000008002001,
    0x0000000200020000, 0x0000000000100005, 0x0000000001000000, 0x0000000000000000};
constexpr point_set<8, 4> iq3_s_set = {
    0x92050aa5082357a7, 0x0422001022892317, 0x09000aa4112249a3, 0x228005104a052208, 0x0100020904128801,
    0x084000a208450014, 0x0200040002000a40, 0x0000110008450015, 0x040250005205ab17, 0x410005020902114b,
    0x040120090411a401, 0x0104000211820992, 0x000011440a001428, 0x0000020005020902, 0x0000005000910000,
    0x010400022002050a, 0x2980052a058a55ab, 0x0000020412248905, 0x12008802810a0092, 0x004001040a140225,
    0x2400000224090082, 0x0100080180040210, 0x0002200000020085, 0x0000010801400220, 0x020802942a04aa04,
    0x44010001000a102a, 0x0000010014010401, 0x0800208a018a1102, 0x0011040002044208, 0x0800401004200502,
    0x0000000200004000, 0x000000002005000a, 0x0100010204910411, 0x0000220821040a84, 0x010480010802210a,
    0x0000000022050a10, 0x0200000180100005, 0x00040000000200a0, 0x0001000010000800, 0x0000020801002100,
    0x1040049100041104, 0x040000000402042a, 0x0000080041080201, 0x0820021000800184, 0x0000004004010012,
    0x00000a0000400400, 0x0000000400000000, 0x0000000000040014, 0x000100000a002a00, 0x0010000000810001,
    0x0104200410000400, 0x0000000100021001, 0x0004000800200000, 0x0001000010000009, 0x0000000100000020,
    0x0000000000000a00, 0x0004100140050091, 0x0000002800100204, 0x0000020001024112, 0x0000080024000004,
    0x0000010000010822, 0x0000000400040000, 0x0000000002000004, 0x0000000000000001};

template<std::size_t Count, std::size_t Dimensions>
using grid = std::array<std::array<std::uint8_t, Dimensions>, Count>;

template<std::size_t Count, unsigned Levels, std::size_t Dimensions>
consteval grid<Count, Dimensions> points_of(const point_set<Levels, Dimensions>& set) {
  grid<Count, Dimensions> points{};
  std::size_t next = 0;
  for (std::size_t c = 0; c < lattice_points<Levels, Dimensions>; ++c) {
    if ((set[c / 64] >> c % 64 & 1) == 0) continue;
    std::size_t rest = c;
    for (std::uint8_t& coordinate : points.at(next)) {
      coordinate = static_cast<std::uint8_t>(rest % Levels);
      rest /= Levels;
    }
    ++next;
  }
  if (next != Count) throw "a block's places name every point";
  return points;
}

constexpr auto iq2_xxs_grid = points_of<256, 3, 8>(iq2_xxs_set);
constexpr auto iq2_xs_grid = points_of<512, 3, 8>(iq2_xs_set);
constexpr auto iq2_s_grid = points_of<1024, 3, 8>(iq2_s_set);
constexpr auto iq1_grid = points_of<2048, 3, 8>(iq1_set);
constexpr auto iq3_xxs_grid = points_of<256, 8, 4>(iq3_xxs_set);
constexpr auto iq3_s_grid = points_of<512, 8, 4>(iq3_s_set);

// ---- blocks

constexpr std::size_t groups = 8;  // groups of 32 weights

unsigned bits_of(std::byte b) { return std::to_integer<unsigned>(b); }
template<class Number>
unsigned get(const std::byte* from) {
  Number n;
  std::memcpy(&n, from, sizeof n);
  return n;
}
float get_half(const std::byte* from) { return widen_f16(static_cast<std::uint16_t>(get<std::uint16_t>(from))); }

/// Seven of eight signs are stored: a point has an even number of minus signs.
unsigned eight_signs(unsigned seven) { return seven | (static_cast<unsigned>(std::popcount(seven)) & 1) << 7; }

/// The bit of a step that means minus, above the coordinate's bits.
constexpr unsigned minus_of_three = 1U << 2, minus_of_eight = 1U << 3;

/// Writes a point's steps: its coordinates, with the bit `minus` set where bit j of `signs` is set.
template<std::size_t Dimensions>
void put_point(const std::array<std::uint8_t, Dimensions>& point, unsigned signs, unsigned minus, std::uint8_t* steps) {
  for (std::size_t j = 0; j < Dimensions; ++j) {
    steps[j] = static_cast<std::uint8_t>(point[j] | ((signs >> j & 1) != 0 ? minus : 0));
  }
}
/// Scales are odd: 2 s + 1.
void put_scales(unsigned first, unsigned second, std::size_t g, grid_block& out) {
  out.scales[2 * g] = static_cast<std::uint8_t>(2 * first + 1);
  out.scales[2 * g + 1] = static_cast<std::uint8_t>(2 * second + 1);
}
/// Four-bit scales of 16 weights each, two to a byte.
void put_nibble_scales(std::byte both, std::size_t g, grid_block& out) {
  put_scales(bits_of(both) & 15, bits_of(both) >> 4, g, out);
}

void read_iq2_xxs(const std::byte* block, grid_block& out) {
  out.d = get_half(block) / 8;
  for (std::size_t g = 0; g < groups; ++g) {
    const std::byte* places = block + 2 + 8 * g;
    const unsigned signs_and_scale = get<std::uint32_t>(places + 4);
    put_scales(signs_and_scale >> 28, signs_and_scale >> 28, g, out);
    for (std::size_t l = 0; l < 4; ++l) {
      put_point(iq2_xxs_grid[bits_of(places[l])], eight_signs(signs_and_scale >> 7 * l & 127), minus_of_three,
                &out.steps[32 * g + 8 * l]);
    }
  }
}

void read_iq2_xs(const std::byte* block, grid_block& out) {
  out.d = get_half(block) / 8;
  for (std::size_t p = 0; p < 32; ++p) {
    const unsigned place_and_signs = get<std::uint16_t>(block + 2 + 2 * p);
    put_point(iq2_xs_grid[place_and_signs & 511], eight_signs(place_and_signs >> 9), minus_of_three, &out.steps[8 * p]);
  }
  for (std::size_t g = 0; g < groups; ++g) put_nibble_scales(block[66 + g], g, out);
}

void read_iq2_s(const std::byte* block, grid_block& out) {
  const std::byte *low = block + 2, *signs = low + 32, *high = signs + 32, *scales = high + 8;
  out.d = get_half(block) / 8;
  for (std::size_t p = 0; p < 32; ++p) {
    const unsigned place = bits_of(low[p]) | (bits_of(high[p / 4]) >> p % 4 * 2 & 3) << 8;
    put_point(iq2_s_grid[place], bits_of(signs[p]), minus_of_three, &out.steps[8 * p]);
  }
  for (std::size_t g = 0; g < groups; ++g) put_nibble_scales(scales[g], g, out);
}

void read_iq3_xxs(const std::byte* block, grid_block& out) {
  const std::byte *places = block + 2, *rest = places + 64;
  out.d = get_half(block) / 4;
  for (std::size_t g = 0; g < groups; ++g) {
    const unsigned signs_and_scale = get<std::uint32_t>(rest + 4 * g);
    put_scales(signs_and_scale >> 28, signs_and_scale >> 28, g, out);
    for (std::size_t l = 0; l < 8; ++l) {
      const unsigned signs = eight_signs(signs_and_scale >> 7 * (l / 2) & 127) >> l % 2 * 4;
      put_point(iq3_xxs_grid[bits_of(places[8 * g + l])], signs, minus_of_eight, &out.steps[32 * g + 4 * l]);
    }
  }
}

void read_iq3_s(const std::byte* block, grid_block& out) {
  const std::byte *low = block + 2, *ninth = low + 64, *signs = ninth + 8, *scales = signs + 32;
  out.d = get_half(block);
  for (std::size_t p = 0; p < 64; ++p) {
    const unsigned place = bits_of(low[p]) | (bits_of(ninth[p / 8]) >> p % 8 & 1) << 8;
    put_point(iq3_s_grid[place], bits_of(signs[p / 2]) >> p % 2 * 4, minus_of_eight, &out.steps[4 * p]);
  }
  for (std::size_t g = 0; g < groups; ++g) {
    const unsigned scale = bits_of(scales[g / 2]) >> g % 2 * 4 & 15;
    put_scales(scale, scale, g, out);
  }
}

/// iq1: the coordinates mean -1, 0 and 1, and all of a point are shifted up or down by an eighth.
void put_moved_point(unsigned place, bool is_down, std::uint8_t* steps) {
  put_point(iq1_grid[place], is_down ? 255 : 0, minus_of_three, steps);
}

void read_iq1_s(const std::byte* block, grid_block& out) {
  const std::byte *low = block + 2, *rest = low + 32;
  out.d = get_half(block) / 8;
  for (std::size_t g = 0; g < groups; ++g) {
    const unsigned high_and_scale = get<std::uint16_t>(rest + 2 * g);
    const unsigned scale = high_and_scale >> 12 & 7;
    put_scales(scale, scale, g, out);
    for (std::size_t l = 0; l < 4; ++l) {
      const unsigned place = bits_of(low[4 * g + l]) | (high_and_scale >> 3 * l & 7) << 8;
      put_moved_point(place, high_and_scale >> 15 != 0, &out.steps[32 * g + 8 * l]);
    }
  }
}

constexpr std::size_t iq1_m_scales_at = 48;  // four numbers of 16 bits: four scales, and four bits of d on top

void read_iq1_m(const std::byte* block, grid_block& out) {
  const std::byte *high = block + 32, *scales = block + iq1_m_scales_at;
  unsigned d = 0;
  for (std::size_t i = 0; i < 4; ++i) d |= get<std::uint16_t>(scales + 2 * i) >> 12 << 4 * i;
  out.d = widen_f16(static_cast<std::uint16_t>(d)) / 8;
  for (std::size_t p = 0; p < 32; ++p) {
    const unsigned high_and_down = bits_of(high[p / 2]) >> p % 2 * 4 & 15;
    put_moved_point(bits_of(block[p]) | (high_and_down & 7) << 8, high_and_down >> 3 != 0, &out.steps[8 * p]);
  }
  for (std::size_t g = 0; g < groups; ++g) {
    const unsigned both = get<std::uint16_t>(scales + g / 2 * 2) >> g % 2 * 6;
    put_scales(both & 7, both >> 3 & 7, g, out);
  }
}

}  // namespace

void read_grid_block(weight_type type, const std::byte* block, grid_block& out) {
  switch (type) {
    case weight_type::iq2_xxs:
      return read_iq2_xxs(block, out);
    case weight_type::iq2_xs:
      return read_iq2_xs(block, out);
    case weight_type::iq2_s:
      return read_iq2_s(block, out);
    case weight_type::iq3_xxs:
      return read_iq3_xxs(block, out);
    case weight_type::iq3_s:
      return read_iq3_s(block, out);
    case weight_type::iq1_s:
      return read_iq1_s(block, out);
    case weight_type::iq1_m:
      return read_iq1_m(block, out);
    default:
      return;
  }
}

void dequantize_grid_block(weight_type type, const std::byte* block, float* out) {
  grid_block b;
  read_grid_block(type, block, b);
  const std::int8_t* values = grid_values(type);
  for (std::size_t i = 0; i < b.steps.size(); ++i) {
    out[i] = b.d * static_cast<float>(b.scales[i / 16]) * static_cast<float>(values[b.steps[i]]);
  }
}

void put_grid_scale(weight_type type, float d, std::byte* block) {
  const std::uint16_t half = narrow_f16(d);
  if (type != weight_type::iq1_m) {
    std::memcpy(block, &half, sizeof half);
    return;
  }
  for (std::size_t i = 0; i < 4; ++i) {
    std::byte& top = block[iq1_m_scales_at + 2 * i + 1];
    top = static_cast<std::byte>((bits_of(top) & 15) | (half >> 4 * i & 15) << 4);
  }
}

}  // namespace redline::kernels
