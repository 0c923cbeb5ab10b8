// Packed weights as floats. A segment of a panel (layout: kernels/panel_layout.hpp) is expanded column by column, 16
// rows each, exactly as kernels/weight_type.hpp defines the weights; the products then use only floats.

template<int... I, class Body>
inline void for_constants(std::integer_sequence<int, I...>, Body body) {
  (body(std::integral_constant<int, I>{}), ...);
}
/// Calls body(0), ..., body(Count - 1) with constants.
template<int Count, class Body>
inline void for_constants(Body body) {
  for_constants(std::make_integer_sequence<int, Count>{}, body);
}

// The index of column i of a group in its word.
constexpr int nibble_of(int i) { return static_cast<int>(layout::bit_of_column(static_cast<std::size_t>(i), 4) / 4); }
constexpr int pair_of(int i) { return static_cast<int>(layout::bit_of_column(static_cast<std::size_t>(i), 2) / 2); }
constexpr int bit_of(int i) { return static_cast<int>(layout::bit_of_column(static_cast<std::size_t>(i), 1)); }

/// While `bytes` of packed weights at `p` are multiplied, later ones are prefetched from memory: the hardware
/// prefetcher stops at page ends, and does too little if products are slower than memory. They go to the second-level
/// cache, because waiting for memory would occupy the first level's few miss buffers and block loads that it could
/// serve; shortly before use they go to the first level. Panels are consecutive, so the end of one prefetches the next.
inline void prefetch_weights(const std::byte* p, std::size_t bytes) {
  constexpr std::size_t from_memory = 8192, from_cache = 1024;
  for (std::size_t line = 0; line < bytes; line += 64) {
    prefetch_far(p + from_memory + line);
    prefetch(p + from_cache + line);
  }
}

inline f32x16 halves(const std::byte* at) { return load_f16(reinterpret_cast<const std::uint16_t*>(at)); }

// Every format has `group` columns that share what `open` reads; weight<I> returns column I of the group, 16 rows. g:
// index of the group in the panel.

struct f16_format {
  static constexpr int group = 1;
  static constexpr std::size_t group_bytes = 32;
  using head = const std::byte*;
  static head open(const std::byte* panel, std::size_t g) { return panel + g * group_bytes; }
  template<int>
  static f32x16 weight(head h) {
    return halves(h);
  }
};

struct bf16_format {
  static constexpr int group = 1;
  static constexpr std::size_t group_bytes = 32;
  using head = const std::byte*;
  static head open(const std::byte* panel, std::size_t g) { return panel + g * group_bytes; }
  template<int>
  static f32x16 weight(head h) {
    return load_bf16(reinterpret_cast<const std::uint16_t*>(h));
  }
};

struct q8_0_format {
  static constexpr int group = 32;
  static constexpr std::size_t group_bytes = layout::unit_bytes(weight_type::q8_0);
  struct head {
    f32x16 d;
    const std::byte* q;
  };
  static head open(const std::byte* panel, std::size_t g) {
    const std::byte* unit = panel + g * group_bytes;
    return {halves(unit), unit + 32};
  }
  template<int I>
  static f32x16 weight(const head& h) {
    return mul(signed_byte<I % 4>(load_words(h.q + I / 4 * layout::words_bytes)), h.d);
  }
};

/// q4_0, q4_1, q5_0 and q5_1: a scale, perhaps a minimum, perhaps fifth bits.
template<weight_type Type, bool Minimum, bool Fifth>
struct q45_format {
  static constexpr int group = 32;
  static constexpr std::size_t group_bytes = layout::unit_bytes(Type);
  static constexpr int offset = Minimum ? 0 : Fifth ? 16 : 8;
  static constexpr std::size_t fifth_at = Minimum ? 64 : 32;
  static constexpr std::size_t nibbles_at = fifth_at + (Fifth ? layout::words_bytes : 0);

  struct head {
    f32x16 d;
    f32x16 m;
    words16 fifth;
    const std::byte* nibbles;
  };
  static head open(const std::byte* panel, std::size_t g) {
    const std::byte* unit = panel + g * group_bytes;
    return {halves(unit), Minimum ? halves(unit + 32) : zero(), load_words(unit + (Fifth ? fifth_at : nibbles_at)),
            unit + nibbles_at};
  }
  template<int I>
  static f32x16 weight(const head& h) {
    const words16 low = load_words(h.nibbles + I / 8 * layout::words_bytes);
    f32x16 q;
    if constexpr (Fifth) {
      q = five_bits<nibble_of(I), bit_of(I), offset>(low, h.fifth);
    } else {
      q = nibble<nibble_of(I), offset>(low);
    }
    return Minimum ? fma(h.d, q, h.m) : mul(q, h.d);
  }
};

/// q4_k and q5_k: w = (d s) q - (dmin m). Both products are exact, so the fused form rounds like the plain one.
template<weight_type Type, bool Fifth>
struct q45_k_format {
  static constexpr int group = 32;
  static constexpr std::size_t group_bytes = layout::unit_bytes(Type) / 8;  // on average
  static constexpr std::size_t nibbles_at = 64 + 8 * 32;

  struct head {
    f32x16 scale;
    f32x16 minus;
    words16 fifth;
    const std::byte* nibbles;
  };
  static head open(const std::byte* panel, std::size_t g) {
    const std::byte* unit = panel + g / 8 * layout::unit_bytes(Type);
    const std::byte* nibbles = unit + nibbles_at + g % 8 * 4 * layout::words_bytes;
    const auto* scales = reinterpret_cast<const std::uint8_t*>(unit + 64 + g % 8 * 32);
    return {mul(halves(unit), load_u8(scales)), mul(sub(broadcast(-0.0F), halves(unit + 32)), load_u8(scales + 16)),
            load_words(Fifth ? unit + nibbles_at + (32 + g % 8) * layout::words_bytes : nibbles), nibbles};
  }
  template<int I>
  static f32x16 weight(const head& h) {
    const words16 low = load_words(h.nibbles + I / 8 * layout::words_bytes);
    if constexpr (Fifth) {
      return fma(h.scale, five_bits<nibble_of(I), bit_of(I), 0>(low, h.fifth), h.minus);
    } else {
      return fma(h.scale, nibble<nibble_of(I), 0>(low), h.minus);
    }
  }
};

struct q6_k_format {
  static constexpr int group = 16;
  static constexpr std::size_t group_bytes = layout::unit_bytes(weight_type::q6_k) / 16;  // on average
  struct head {
    f32x16 scale;
    words16 pairs;
    const std::byte* nibbles;
  };
  static head open(const std::byte* panel, std::size_t g) {
    const std::byte* unit = panel + g / 16 * layout::unit_bytes(weight_type::q6_k);
    const std::byte* nibbles = unit + 64 + 16 * 16;
    return {mul(halves(unit), load_i8(reinterpret_cast<const std::int8_t*>(unit + 64 + g % 16 * 16))),
            load_words(nibbles + (32 + g % 16) * layout::words_bytes), nibbles + g % 16 * 2 * layout::words_bytes};
  }
  template<int I>
  static f32x16 weight(const head& h) {
    const words16 low = load_words(h.nibbles + I / 8 * layout::words_bytes);
    return mul(six_bits<nibble_of(I), pair_of(I), 32>(low, h.pairs), h.scale);
  }
};

struct q2_k_format {
  static constexpr int group = 16;
  static constexpr std::size_t group_bytes = layout::unit_bytes(weight_type::q2_k) / 16;  // on average
  struct head {
    f32x16 scale;
    f32x16 minus;
    words16 pairs;
  };
  static head open(const std::byte* panel, std::size_t g) {
    const std::byte* unit = panel + g / 16 * layout::unit_bytes(weight_type::q2_k);
    const auto* both = reinterpret_cast<const std::uint8_t*>(unit + 64 + g % 16 * 16);
    return {mul(halves(unit), load_low_u4(both)), mul(sub(broadcast(-0.0F), halves(unit + 32)), load_high_u4(both)),
            load_words(unit + 64 + 16 * 16 + g % 16 * layout::words_bytes)};
  }
  template<int I>
  static f32x16 weight(const head& h) {
    return fma(h.scale, two_bits<pair_of(I)>(h.pairs), h.minus);
  }
};

struct q3_k_format {
  static constexpr int group = 16;
  static constexpr std::size_t group_bytes = layout::unit_bytes(weight_type::q3_k) / 16;  // on average
  struct head {
    f32x16 scale;
    words16 pairs;
    words16 thirds;  // for the group, in the low half of each byte
  };
  static head open(const std::byte* panel, std::size_t g) {
    const std::byte* unit = panel + g / 16 * layout::unit_bytes(weight_type::q3_k);
    const std::byte* pairs = unit + 64 + 16 * 16;
    return {mul(halves(unit), load_i8(reinterpret_cast<const std::int8_t*>(unit + 64 + g % 16 * 16))),
            load_words(pairs + g % 16 * layout::words_bytes),
            shifted_right(load_words(pairs + (16 + g % 16 / 2) * layout::words_bytes), g % 2 * 4)};
  }
  template<int I>
  static f32x16 weight(const head& h) {
    return mul(three_bits<pair_of(I), bit_of(I), 4>(h.pairs, h.thirds), h.scale);
  }
};

/// Tables of numbers selected by nibbles or three bits.
struct iq4_numbers {
  static constexpr const std::int8_t (&values)[16] = iq4_values;
};
struct mxfp4_numbers {
  static constexpr const std::int8_t (&values)[16] = mxfp4_values;
};
struct iq3_xxs_numbers {
  static constexpr const std::int8_t (&values)[16] = iq3_xxs_values;
};
struct iq3_s_numbers {
  static constexpr const std::int8_t (&values)[16] = iq3_s_values;
};
struct iq2_numbers {
  static constexpr const std::int8_t (&values)[16] = iq2_values;
};
struct iq1_numbers {
  static constexpr const std::int8_t (&values)[16] = iq1_values;
};

/// iq4_nl and mxfp4: a scale and nibbles.
template<weight_type Type, class Numbers>
struct table_format {
  static constexpr int group = 32;
  static constexpr std::size_t group_bytes = layout::unit_bytes(Type);
  struct head {
    f32x16 scale;
    const std::byte* nibbles;
  };
  static head open(const std::byte* panel, std::size_t g) {
    const std::byte* unit = panel + g * group_bytes;
    if constexpr (Type == weight_type::mxfp4) {
      return {load_bf16(reinterpret_cast<const std::uint16_t*>(unit)), unit + 32};
    } else {
      return {halves(unit), unit + 32};
    }
  }
  template<int I>
  static f32x16 weight(const head& h) {
    return mul(nibble_of_table<nibble_of(I), Numbers>(load_words(h.nibbles + I / 8 * layout::words_bytes)), h.scale);
  }
};

/// iq4_xs and iq3: 256 columns share a float, and each 32 of them a small scale.
template<class Numbers>
struct scaled_table_format {
  static constexpr int group = 32;
  static constexpr std::size_t group_bytes = layout::unit_bytes(weight_type::iq4_xs) / 8;  // on average
  struct head {
    f32x16 scale;
    const std::byte* nibbles;
  };
  static head open(const std::byte* panel, std::size_t g) {
    const std::byte* unit = panel + g / 8 * layout::unit_bytes(weight_type::iq4_xs);
    return {mul(load(reinterpret_cast<const float*>(unit)),
                load_i8(reinterpret_cast<const std::int8_t*>(unit + 64 + g % 8 * 16))),
            unit + 64 + 8 * 16 + g % 8 * 4 * layout::words_bytes};
  }
  template<int I>
  static f32x16 weight(const head& h) {
    return mul(nibble_of_table<nibble_of(I), Numbers>(load_words(h.nibbles + I / 8 * layout::words_bytes)), h.scale);
  }
};
using iq4_xs_format = scaled_table_format<iq4_numbers>;
using iq3_xxs_format = scaled_table_format<iq3_xxs_numbers>;
using iq3_s_format = scaled_table_format<iq3_s_numbers>;

/// iq2 and iq1: like iq4_xs, with numbers selected by three bits, and perhaps 16 columns per small scale.
template<int Group, class Numbers>
struct three_bit_table_format {
  static constexpr int group = Group;
  static constexpr std::size_t groups = 256 / Group;
  static constexpr std::size_t unit_bytes =
      layout::unit_bytes(Group == 16 ? weight_type::iq2_xs : weight_type::iq2_xxs);
  static constexpr std::size_t group_bytes = unit_bytes / groups;  // on average
  struct head {
    f32x16 scale;
    const std::byte* pairs;
    words16 thirds;  // for the group, from the lowest bit of each byte on
  };
  static head open(const std::byte* panel, std::size_t g) {
    const std::byte* unit = panel + g / groups * unit_bytes;
    const std::byte* pairs = unit + 64 + groups * 16;
    const words16 thirds = load_words(pairs + (16 + g % groups * Group / 32) * layout::words_bytes);
    return {mul(load(reinterpret_cast<const float*>(unit)),
                load_i8(reinterpret_cast<const std::int8_t*>(unit + 64 + g % groups * 16))),
            pairs + g % groups * (Group / 16) * layout::words_bytes,
            Group == 16 ? shifted_right(thirds, g % 2 * 4) : thirds};
  }
  template<int I>
  static f32x16 weight(const head& h) {
    const words16 pairs = load_words(h.pairs + I / 16 * layout::words_bytes);
    return mul(three_bits_of_table<pair_of(I), bit_of(I), Numbers>(pairs, h.thirds), h.scale);
  }
};
using iq2_32_format = three_bit_table_format<32, iq2_numbers>;
using iq2_16_format = three_bit_table_format<16, iq2_numbers>;
using iq1_32_format = three_bit_table_format<32, iq1_numbers>;
using iq1_16_format = three_bit_table_format<16, iq1_numbers>;

/// Writes columns [k, k + depth) of a panel: out [depth][16]. Both are multiples of the format's group.
using expand_function = void (*)(const std::byte* panel, std::size_t k, std::size_t depth, float* out);

template<class Format>
void expand_stretch(const std::byte* panel, std::size_t k, std::size_t depth, float* out) {
  for (std::size_t i = 0; i < depth; i += Format::group) {
    const auto head = Format::open(panel, (k + i) / Format::group);
    for_constants<Format::group>([&](auto c) { store(out + (i + c) * 16, Format::template weight<c>(head)); });
  }
}

inline void expand_f32(const std::byte* panel, std::size_t k, std::size_t depth, float* out) {
  std::memcpy(out, panel + k * 64, depth * 64);
}

/// Calls body.operator()<Format>() for the format of `type`, which is not f32.
template<class Body>
inline auto with_format(weight_type type, Body body) {
  switch (type) {
    case weight_type::f32:
    case weight_type::f16:
      break;
    case weight_type::bf16:
      return body.template operator()<bf16_format>();
    case weight_type::q8_0:
      return body.template operator()<q8_0_format>();
    case weight_type::q4_0:
      return body.template operator()<q45_format<weight_type::q4_0, false, false>>();
    case weight_type::q4_1:
      return body.template operator()<q45_format<weight_type::q4_1, true, false>>();
    case weight_type::q5_0:
      return body.template operator()<q45_format<weight_type::q5_0, false, true>>();
    case weight_type::q5_1:
      return body.template operator()<q45_format<weight_type::q5_1, true, true>>();
    case weight_type::q4_k:
      return body.template operator()<q45_k_format<weight_type::q4_k, false>>();
    case weight_type::q5_k:
      return body.template operator()<q45_k_format<weight_type::q5_k, true>>();
    case weight_type::q6_k:
      return body.template operator()<q6_k_format>();
    case weight_type::q2_k:
      return body.template operator()<q2_k_format>();
    case weight_type::q3_k:
      return body.template operator()<q3_k_format>();
    case weight_type::iq4_nl:
      return body.template operator()<table_format<weight_type::iq4_nl, iq4_numbers>>();
    case weight_type::iq4_xs:
      return body.template operator()<iq4_xs_format>();
    case weight_type::mxfp4:
      return body.template operator()<table_format<weight_type::mxfp4, mxfp4_numbers>>();
    case weight_type::iq2_xxs:
      return body.template operator()<iq2_32_format>();
    case weight_type::iq2_xs:
    case weight_type::iq2_s:
      return body.template operator()<iq2_16_format>();
    case weight_type::iq3_xxs:
      return body.template operator()<iq3_xxs_format>();
    case weight_type::iq3_s:
      return body.template operator()<iq3_s_format>();
    case weight_type::iq1_s:
      return body.template operator()<iq1_32_format>();
    case weight_type::iq1_m:
      return body.template operator()<iq1_16_format>();
  }
  return body.template operator()<f16_format>();
}

inline expand_function expander_of(weight_type type) {
  if (type == weight_type::f32) return expand_f32;
  return with_format(type, []<class Format>() -> expand_function { return expand_stretch<Format>; });
}
