// Packed weights as bytes. Four columns of a panel (layout: kernels/panel_layout.hpp) are one word per row, of unsigned
// integers that exceed the represented weight by `offset`. A group of columns shares a scale, and perhaps a minimum: w
// = scale (u - offset) + minimum.

/// Properties of a format: bits of its integers, their offset, columns that share a scale.
template<int Bits, int Offset, bool Minimum, int Group>
struct byte_format {
  static constexpr int bits = Bits;
  static constexpr int offset = Offset;
  static constexpr bool has_minimum = Minimum;
  static constexpr int group = Group;
  static constexpr int steps = Group / 4;  // words per row in a group
};

// Every format has `open`, which reads what a group's columns share, and bytes<I>, which returns the columns [4 I, 4 I
// + 4) of the group. g: index of the group in the panel.

/// Nibbles: columns [8 n, 8 n + 4) are the low halves of word n, columns [8 n + 4, 8 n + 8) the high ones.
template<int I>
inline words16 nibbles_as_bytes(const std::byte* nibbles) {
  const words16 w = load_words(nibbles + I / 2 * layout::words_bytes);
  return I % 2 == 0 ? low_nibbles(w) : high_nibbles(w);
}

struct q8_0_bytes : byte_format<8, 128, false, 32> {
  static constexpr std::size_t group_bytes = layout::unit_bytes(weight_type::q8_0);
  struct head {
    f32x16 scale;
    const std::byte* q;
  };
  static head open(const std::byte* panel, std::size_t g) {
    const std::byte* unit = panel + g * group_bytes;
    return {halves(unit), unit + 32};
  }
  template<int I>
  static words16 bytes(const head& h) {
    return add_128(load_words(h.q + I * layout::words_bytes));
  }
};

template<weight_type Type, bool Minimum, bool Fifth>
struct q45_bytes : byte_format<Fifth ? 5 : 4,
                               Minimum ? 0
                               : Fifth ? 16
                                       : 8,
                               Minimum, 32> {
  using floats = q45_format<Type, Minimum, Fifth>;
  static constexpr std::size_t group_bytes = floats::group_bytes;
  struct head {
    f32x16 scale;
    f32x16 minimum;
    words16 fifth;
    const std::byte* nibbles;
  };
  static head open(const std::byte* panel, std::size_t g) {
    const auto h = floats::open(panel, g);
    return {h.d, h.m, h.fifth, h.nibbles};
  }
  template<int I>
  static words16 bytes(const head& h) {
    const words16 low = nibbles_as_bytes<I>(h.nibbles);
    if constexpr (Fifth) {
      return with_fifth_bit<I>(low, h.fifth);
    } else {
      return low;
    }
  }
};

template<weight_type Type, bool Fifth>
struct q45_k_bytes : byte_format<Fifth ? 5 : 4, 0, true, 32> {
  using floats = q45_k_format<Type, Fifth>;
  static constexpr std::size_t group_bytes = floats::group_bytes;
  struct head {
    f32x16 scale;
    f32x16 minimum;
    words16 fifth;
    const std::byte* nibbles;
  };
  static head open(const std::byte* panel, std::size_t g) {
    const auto h = floats::open(panel, g);
    return {h.scale, h.minus, h.fifth, h.nibbles};
  }
  template<int I>
  static words16 bytes(const head& h) {
    const words16 low = nibbles_as_bytes<I>(h.nibbles);
    if constexpr (Fifth) {
      return with_fifth_bit<I>(low, h.fifth);
    } else {
      return low;
    }
  }
};

struct q6_k_bytes : byte_format<6, 32, false, 16> {
  using floats = q6_k_format;
  static constexpr std::size_t group_bytes = floats::group_bytes;
  using head = floats::head;
  static head open(const std::byte* panel, std::size_t g) { return floats::open(panel, g); }
  template<int I>
  static words16 bytes(const head& h) {
    return with_upper_pair<I>(nibbles_as_bytes<I>(h.nibbles), h.pairs);
  }
};

struct q2_k_bytes : byte_format<2, 0, true, 16> {
  using floats = q2_k_format;
  static constexpr std::size_t group_bytes = floats::group_bytes;
  struct head {
    f32x16 scale;
    f32x16 minimum;
    words16 pairs;
  };
  static head open(const std::byte* panel, std::size_t g) {
    const auto h = floats::open(panel, g);
    return {h.scale, h.minus, h.pairs};
  }
  template<int I>
  static words16 bytes(const head& h) {
    return pairs_as_bytes<I>(h.pairs);
  }
};

struct q3_k_bytes : byte_format<3, 4, false, 16> {
  using floats = q3_k_format;
  static constexpr std::size_t group_bytes = floats::group_bytes;
  using head = floats::head;
  static head open(const std::byte* panel, std::size_t g) { return floats::open(panel, g); }
  template<int I>
  static words16 bytes(const head& h) {
    return with_third_bit<I>(pairs_as_bytes<I>(h.pairs), h.thirds);
  }
};

/// Nibbles that select numbers of a table, to which `offset` is added; the result has 5 to 8 bits.
template<class Floats, class Numbers, int Bits, int Offset>
struct table_bytes : byte_format<Bits, Offset, false, 32> {
  static constexpr std::size_t group_bytes = Floats::group_bytes;
  using head = typename Floats::head;
  static head open(const std::byte* panel, std::size_t g) { return Floats::open(panel, g); }
  template<int I>
  static words16 bytes(const head& h) {
    return bytes_of_table<Numbers, Offset>(nibbles_as_bytes<I>(h.nibbles));
  }
};
using iq4_nl_bytes = table_bytes<table_format<weight_type::iq4_nl, iq4_numbers>, iq4_numbers, 8, 128>;
using iq4_xs_bytes = table_bytes<iq4_xs_format, iq4_numbers, 8, 128>;
using mxfp4_bytes = table_bytes<table_format<weight_type::mxfp4, mxfp4_numbers>, mxfp4_numbers, 5, 16>;
using iq3_xxs_bytes = table_bytes<iq3_xxs_format, iq3_xxs_numbers, 7, 64>;
using iq3_s_bytes = table_bytes<iq3_s_format, iq3_s_numbers, 5, 16>;

/// Selects numbers of a table by three bits.
template<class Floats, class Numbers, int Bits, int Offset>
struct three_bit_table_bytes : byte_format<Bits, Offset, false, Floats::group> {
  static constexpr std::size_t group_bytes = Floats::group_bytes;
  using head = typename Floats::head;
  static head open(const std::byte* panel, std::size_t g) { return Floats::open(panel, g); }
  template<int I>
  static words16 bytes(const head& h) {
    const words16 pairs = load_words(h.pairs + I / 4 * layout::words_bytes);
    return bytes_of_table<Numbers, Offset>(with_third_bit<I>(pairs_as_bytes<I % 4>(pairs), h.thirds));
  }
};
using iq2_32_bytes = three_bit_table_bytes<iq2_32_format, iq2_numbers, 7, 64>;
using iq2_16_bytes = three_bit_table_bytes<iq2_16_format, iq2_numbers, 7, 64>;
using iq1_32_bytes = three_bit_table_bytes<iq1_32_format, iq1_numbers, 5, 16>;
using iq1_16_bytes = three_bit_table_bytes<iq1_16_format, iq1_numbers, 5, 16>;

/// Calls body.operator()<Format>() for the format of `type`, which must be a block type.
template<class Body>
inline auto with_byte_format(weight_type type, Body body) {
  switch (type) {
    case weight_type::f32:
    case weight_type::f16:
    case weight_type::bf16:
    case weight_type::q8_0:
      break;
    case weight_type::q4_0:
      return body.template operator()<q45_bytes<weight_type::q4_0, false, false>>();
    case weight_type::q4_1:
      return body.template operator()<q45_bytes<weight_type::q4_1, true, false>>();
    case weight_type::q5_0:
      return body.template operator()<q45_bytes<weight_type::q5_0, false, true>>();
    case weight_type::q5_1:
      return body.template operator()<q45_bytes<weight_type::q5_1, true, true>>();
    case weight_type::q4_k:
      return body.template operator()<q45_k_bytes<weight_type::q4_k, false>>();
    case weight_type::q5_k:
      return body.template operator()<q45_k_bytes<weight_type::q5_k, true>>();
    case weight_type::q6_k:
      return body.template operator()<q6_k_bytes>();
    case weight_type::q2_k:
      return body.template operator()<q2_k_bytes>();
    case weight_type::q3_k:
      return body.template operator()<q3_k_bytes>();
    case weight_type::iq4_nl:
      return body.template operator()<iq4_nl_bytes>();
    case weight_type::iq4_xs:
      return body.template operator()<iq4_xs_bytes>();
    case weight_type::mxfp4:
      return body.template operator()<mxfp4_bytes>();
    case weight_type::iq2_xxs:
      return body.template operator()<iq2_32_bytes>();
    case weight_type::iq2_xs:
    case weight_type::iq2_s:
      return body.template operator()<iq2_16_bytes>();
    case weight_type::iq3_xxs:
      return body.template operator()<iq3_xxs_bytes>();
    case weight_type::iq3_s:
      return body.template operator()<iq3_s_bytes>();
    case weight_type::iq1_s:
      return body.template operator()<iq1_32_bytes>();
    case weight_type::iq1_m:
      return body.template operator()<iq1_16_bytes>();
  }
  return body.template operator()<q8_0_bytes>();
}
