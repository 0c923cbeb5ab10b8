#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "kernels/machine/memory.hpp"
#include "tests/kernels/kernel_fixture.hpp"

namespace redline::kernels {
namespace {

/// One (layer, KV head) with a sequence. Keys are rotated for their position minus the offset of their piece.
struct sequence {
  std::size_t head_dim = 0;
  std::size_t rotary_dim = 0;
  std::size_t group = 1;
  rope_pairs pairs = rope_pairs::half_split;
  element_type type = element_type::f32;
  std::vector<std::uint32_t> slots;    // by token
  std::vector<std::int32_t> offsets;   // by token
  std::vector<float> keys, values, q;  // [tokens, head_dim]; q: [tokens, group, head_dim]; none are rotated
  std::size_t page_stride_bytes = 0;
  std::vector<std::byte> storage;
  std::size_t window = 0;
  float soft_cap = 0;
  std::vector<float> sinks;  // [group], or empty
  [[nodiscard]] std::size_t tokens() const { return slots.size(); }
};

std::vector<float> angles_at(const sequence& s, double position) {
  std::vector<float> angles(s.rotary_dim);
  for (std::size_t i = 0; i < s.rotary_dim / 2; ++i) {
    const double angle =
        position * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(s.rotary_dim));
    angles[i] = static_cast<float>(std::cos(angle));
    angles[s.rotary_dim / 2 + i] = static_cast<float>(std::sin(angle));
  }
  return angles;
}

class attention : public kernel_test {
 protected:
  static kv_view view_of(sequence& s) {
    return {s.storage.data(), s.storage.data() + round_up(kv_key_bytes(s.type, s.head_dim), 64), s.page_stride_bytes,
            s.type};
  }

  /// Puts tokens in random pages; `moved` gives them offsets.
  sequence make(std::size_t tokens, std::size_t head_dim, std::size_t group, element_type type, bool scattered,
                bool moved) {
    sequence s{.head_dim = head_dim, .rotary_dim = head_dim, .group = group, .type = type};
    const std::size_t pages = tokens / kv_page_tokens * 2 + 3;
    s.page_stride_bytes = kv_head_bytes(type, head_dim) + 64;
    s.storage.resize(pages * s.page_stride_bytes, std::byte{0xff});  // NaN wherever nothing is written
    std::vector<std::uint32_t> order(pages);
    std::iota(order.begin(), order.end(), 0U);
    if (scattered) std::shuffle(order.begin(), order.end(), random_);
    std::size_t index = 0;
    std::int32_t offset = 0;
    for (std::uint32_t in_page = scattered ? 5 : 0; s.slots.size() < tokens; ++in_page) {
      if (in_page == kv_page_tokens || (scattered && below(20) == 0)) {
        in_page = scattered ? static_cast<std::uint32_t>(below(3)) : 0;
        index = (index + 1) % pages;
      }
      if (moved && below(9) == 0) offset = static_cast<std::int32_t>(below(7)) * 11 - 30;
      const std::uint32_t slot = order[index] * kv_page_tokens + in_page;
      if (std::find(s.slots.begin(), s.slots.end(), slot) != s.slots.end()) continue;
      s.slots.push_back(slot);
      s.offsets.push_back(offset);
    }
    s.keys = uniforms(tokens * head_dim);
    s.values = uniforms(tokens * head_dim);
    s.q = uniforms(tokens * group * head_dim);
    for (float& v : s.q) v *= 4;
    return s;
  }

  /// Adds what families have beyond plain attention, singly and combined. `kind` is below `kinds`.
  static constexpr int kinds = 5;
  void add_extras(sequence& s, int kind) {
    if (kind == 1 || kind == 4) s.window = 1 + below(kind == 1 ? 30 : s.tokens());
    if (kind == 2 || kind == 4) s.soft_cap = 1.5F;
    if (kind < 3) return;
    s.sinks = uniforms(s.group);
    for (float& sink : s.sinks) sink *= 6;
  }

  void store_all(const kernel_table& with, sequence& s) {
    for (std::size_t t = 0; t < s.tokens(); ++t) {
      std::vector<float> key(s.head_dim);
      const auto angles = angles_at(s, static_cast<double>(t) - s.offsets[t]);
      with.rotate(s.pairs, s.keys.data() + t * s.head_dim, angles.data(), s.rotary_dim, s.head_dim, key.data());
      with.store_kv(view_of(s), s.slots[t], s.head_dim, key.data(), s.values.data() + t * s.head_dim);
    }
  }

  /// Cuts tiles as the model does; `cut` adds random cuts.
  std::vector<attention_tile> tiles_of(const sequence& s, std::vector<std::int32_t>& distinct, bool cut) {
    std::vector<attention_tile> tiles;
    for (std::uint32_t t = 0; t < s.tokens(); ++t) {
      auto known = std::find(distinct.begin(), distinct.end(), s.offsets[t]);
      if (known == distinct.end()) known = distinct.insert(known, s.offsets[t]);
      const auto index = static_cast<std::uint16_t>(known - distinct.begin());
      const bool joins = t > 0 && s.slots[t] == s.slots[t - 1] + 1 && s.slots[t] % tile_tokens != 0 &&
                         tiles.back().offset_index == index && !(cut && below(4) == 0);
      if (joins) {
        ++tiles.back().count;
      } else {
        tiles.push_back({s.slots[t], t, 1, index});
      }
    }
    return tiles;
  }

  /// Returns the outputs of rows [first, last); a row is the query at that token. splits_apart: each KV split has its
  /// own call, and the last one is first.
  std::vector<float> attend(const kernel_table& with, sequence& s, std::size_t first, std::size_t last, bool cut,
                            bool splits_apart = false) {
    std::vector<std::int32_t> distinct;
    const auto tiles = tiles_of(s, distinct, cut);
    const std::size_t rows = last - first;
    std::vector<std::vector<float>> angles;
    for (const std::int32_t offset : distinct) {
      for (std::size_t t = first; t < last; ++t) angles.push_back(angles_at(s, static_cast<double>(t) - offset));
    }
    std::vector<rope_angles> pointers;
    for (const auto& a : angles) pointers.push_back(a.data());
    const std::size_t stride = s.group * s.head_dim;
    std::vector<float> out(rows * stride, nan);
    memory_block scratch(attention_scratch_floats(rows, s.group, s.head_dim, distinct.size()) * sizeof(float));
    attention_args a{.q = s.q.data() + first * stride,
                     .q_stride = stride,
                     .out = out.data(),
                     .out_stride = stride,
                     .rows = rows,
                     .group = s.group,
                     .head_dim = s.head_dim,
                     .rotary_dim = s.rotary_dim,
                     .pairs = s.pairs,
                     .scale = 0.25F,
                     .soft_cap = s.soft_cap,
                     .window = s.window,
                     .sinks = s.sinks.empty() ? nullptr : s.sinks.data(),
                     .visible = first + 1,
                     .tiles = tiles.data(),
                     .tile_count = tiles.size(),
                     .angles = pointers.data(),
                     .angles_stride = rows,
                     .offset_count = distinct.size(),
                     .kv = view_of(s),
                     .scratch = reinterpret_cast<float*>(scratch.data())};
    if (!splits_apart) {
      with.attention(a);
      return out;
    }
    const std::size_t splits = count_kv_splits(last);
    memory_block records(splits * rows * s.group * attention_record_floats(s.head_dim) * sizeof(float));
    std::fill_n(reinterpret_cast<float*>(records.data()), records.size() / sizeof(float), nan);
    a.records = reinterpret_cast<float*>(records.data());
    for (std::size_t split = splits; split > 0; --split) {
      a.split_begin = split - 1;
      a.split_end = split;
      with.attention(a);
    }
    with.join_attention(a);
    return out;
  }
};

/// Computes in double, with keys and queries rotated for their positions, and without pieces or offsets.
std::vector<float> plain_attention(const sequence& s, std::size_t row) {
  const auto turn = [&](const float* x, std::size_t position, std::vector<double>& out) {
    out.assign(x, x + s.head_dim);
    const std::size_t half = s.rotary_dim / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(position) * std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half));
      const std::size_t a = s.pairs == rope_pairs::adjacent ? 2 * i : i;
      const std::size_t b = s.pairs == rope_pairs::adjacent ? 2 * i + 1 : i + half;
      out[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
      out[b] = x[a] * std::sin(angle) + x[b] * std::cos(angle);
    }
  };
  std::vector<float> result;
  std::vector<double> q;
  std::vector<double> k;
  for (std::size_t g = 0; g < s.group; ++g) {
    turn(s.q.data() + (row * s.group + g) * s.head_dim, row, q);
    std::vector<double> sum(s.head_dim);
    double total = s.sinks.empty() ? 0 : std::exp(double{s.sinks[g]});
    for (std::size_t t = s.window == 0 || row < s.window ? 0 : row + 1 - s.window; t <= row; ++t) {
      turn(s.keys.data() + t * s.head_dim, t, k);
      double score = std::inner_product(q.begin(), q.end(), k.begin(), 0.0) * 0.25;
      if (s.soft_cap > 0) score = s.soft_cap * std::tanh(score / s.soft_cap);
      const double weight = std::exp(score);
      total += weight;
      for (std::size_t d = 0; d < s.head_dim; ++d) sum[d] += weight * s.values[t * s.head_dim + d];
    }
    for (const double v : sum) result.push_back(static_cast<float>(v / total));
  }
  return result;
}

TEST_P(attention, over_moved_and_scattered_pieces_equals_exactly_rotated_contiguous_keys) {
  int world = 0;
  for (const rope_pairs pairs : {rope_pairs::adjacent, rope_pairs::half_split}) {
    for (const std::size_t head_dim : {2, 16, 20, 64}) {
      for (const std::size_t tokens : {1, 15, 16, 17, 90, 129, 300}) {
        sequence s = make(tokens, head_dim, 3, element_type::f32, true, true);
        add_extras(s, world++ % kinds);
        s.pairs = pairs;
        if (head_dim == 20) s.rotary_dim = 12;
        store_all(table(), s);
        // bf16: a score of 64 products of up to 4 is off by a few thousandths, and so is a weight.
        const float tolerance = table().product_error == 0 ? 2e-5F : 2e-2F;
        const auto found = attend(table(), s, 0, tokens, true);
        for (std::size_t row = 0; row < tokens; ++row) {
          const auto expected = plain_attention(s, row);
          for (std::size_t i = 0; i < expected.size(); ++i) {
            ASSERT_NEAR(found[row * expected.size() + i], expected[i], tolerance)
                << "head " << head_dim << ", row " << row << " of " << tokens;
          }
        }
      }
    }
  }
}

/// Compares a target with the one whose bits it must match.
class twin_attention : public attention {};

TEST_P(twin_attention, gives_the_bits_of_the_other_target) {
  int world = 0;
  for (const element_type type : all_element_types) {
    const bool is_scalar = table().one_chain || holds_integers(type);
    const kernel_table& other = is_scalar ? scalar() : *choose_table("amx_emulated").table;
    for (const std::size_t head_dim : {2, 18, 64, 128, 256, 576}) {
      for (const std::size_t group : {1, 2, 7}) {
        const std::size_t more = head_dim == 18 ? kv_split_tokens : 0;  // extends into another KV split
        sequence s = make(40 + more + below(head_dim <= 64 ? 200 : 60), head_dim, group, type, true, true);
        add_extras(s, world++ % kinds);
        sequence copy = s;
        store_all(table(), s);
        store_all(other, copy);
        ASSERT_EQ(s.storage, copy.storage);
        const std::size_t first = below(s.tokens());
        ASSERT_TRUE(same_bits(attend(other, s, first, s.tokens(), false), attend(table(), s, first, s.tokens(), false)))
            << head_dim << ", group " << group;
      }
    }
  }
}

TEST_P(attention, gives_a_row_the_same_bits_in_any_batch_and_with_keys_in_any_slots) {
  for (const element_type type : all_element_types) {
    for (int world = 0; world < 2 * kinds; ++world) {
      sequence s = make(20 + below(300), 32, 1 + below(4), type, true, false);
      add_extras(s, world % kinds);
      sequence straight = s;
      for (std::uint32_t t = 0; t < s.tokens(); ++t) straight.slots[t] = t;
      store_all(table(), s);
      store_all(table(), straight);
      const auto expected = attend(table(), straight, 0, s.tokens(), false);
      const std::size_t stride = s.group * s.head_dim;
      for (std::size_t first = 0; first < s.tokens();) {
        const std::size_t last = std::min(s.tokens(), first + 1 + below(12));
        const auto found = attend(table(), s, first, last, true);
        ASSERT_EQ(std::memcmp(found.data(), expected.data() + first * stride, found.size() * sizeof(float)), 0)
            << "rows " << first << " to " << last;
        first = last;
      }
    }
  }
}

TEST_P(attention, kv_splits_computed_apart_and_joined_give_the_same_bits) {
  constexpr std::size_t end = 2 * kv_split_tokens + 300;
  for (const auto& [type, window] : {std::pair<element_type, std::size_t>{element_type::f32, 0},
                                     {element_type::bf16, 0},
                                     {element_type::q8_0, 0},
                                     {element_type::i16, 0},
                                     {element_type::f32, kv_split_tokens + 90},
                                     {element_type::f32, 4},
                                     {element_type::f16, 200},
                                     {element_type::q8_0, 300},
                                     {element_type::i16, 300}}) {
    sequence s = make(end, 20, 1 + below(3), type, true, true);
    s.rotary_dim = 12;
    s.window = window;
    if (window != 0) s.sinks = uniforms(s.group);
    store_all(table(), s);
    for (const auto& [first, last] : {std::pair<std::size_t, std::size_t>{end - 1, end},
                                      {2 * kv_split_tokens - 5, 2 * kv_split_tokens + 7},
                                      {kv_split_tokens - 3, kv_split_tokens},
                                      {3, 9}}) {
      const auto whole = attend(table(), s, first, last, false);
      EXPECT_TRUE(same_bits(whole, attend(table(), s, first, last, true, true))) << "rows from " << first;
      if (type != element_type::f32 || last < end) continue;
      const auto expected = plain_attention(s, first);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(whole[i], expected[i], table().product_error == 0 ? 2e-5F : 2e-2F);
      }
    }
  }
}

// Windows that skip, cut or end at blocks, tiles and KV splits, with rows in calls of many heights.
TEST_P(attention, through_a_window_sees_its_last_tokens_alone_and_in_any_batch) {
  for (const element_type type : {element_type::f32, element_type::q8_0, element_type::i16}) {
    for (const std::size_t window : {1, 16, 127, 128, 129, 512, 700}) {
      sequence s = make(kv_split_tokens + 330, 18, 2, type, true, true);
      s.window = window;
      store_all(table(), s);
      for (const std::size_t first : {window - 1, std::size_t{250}, kv_split_tokens - 3, kv_split_tokens + 250}) {
        const std::size_t last = std::min(s.tokens(), first + 48);
        const auto together = attend(table(), s, first, last, true);
        for (const std::size_t row : {first, first + (last - first) / 2, last - 1}) {
          const auto alone = attend(table(), s, row, row + 1, false);
          const auto* same = together.data() + (row - first) * alone.size();
          ASSERT_EQ(std::memcmp(same, alone.data(), alone.size() * sizeof(float)), 0) << window << ", row " << row;
          if (holds_integers(type)) continue;
          const auto expected = plain_attention(s, row);
          for (std::size_t i = 0; i < expected.size(); ++i) {
            ASSERT_NEAR(alone[i], expected[i], table().product_error == 0 ? 2e-5F : 2e-2F) << window << ", row " << row;
          }
        }
      }
    }
  }
}

TEST_P(attention, with_a_window_as_long_as_the_context_has_the_bits_of_full_attention) {
  sequence s = make(200, 32, 2, element_type::f32, true, false);
  store_all(table(), s);
  const auto full = attend(table(), s, 150, 200, false);
  s.window = 200;
  EXPECT_TRUE(same_bits(full, attend(table(), s, 150, 200, false)));
}

TEST_P(attention, gives_nothing_where_a_sink_outweighs_all_tokens_and_all_where_it_weighs_nothing) {
  sequence s = make(40, 32, 2, element_type::f32, false, false);
  store_all(table(), s);
  const auto plain = attend(table(), s, 30, 40, false);
  s.sinks = {-1000, 1000};
  const auto found = attend(table(), s, 30, 40, false);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool drowned = i / 32 % 2 == 1;
    ASSERT_NEAR(found[i], drowned ? 0 : plain[i], 1e-6) << i;
  }
}

TEST_P(attention, reads_no_token_that_a_row_may_not_see) {
  for (const element_type type : {element_type::f32, element_type::q8_0, element_type::i16}) {
    sequence s = make(50, 16, 2, type, false, false);
    store_all(table(), s);
    const auto before = attend(table(), s, 20, 30, false);
    // Keys after the last row share its tile: they may be read but must not change the output. Values are not read, or
    // count as zeros.
    const std::vector<float> bad(16, nan);
    for (std::size_t t = 30; t < 50; ++t) {
      table().store_kv(view_of(s), s.slots[t], 16, bad.data(), bad.data());
    }
    EXPECT_TRUE(same_bits(before, attend(table(), s, 20, 30, false)));
    // The same holds for tokens before the windows of all rows.
    s.window = 9;
    const auto in_window = attend(table(), s, 20, 30, false);
    for (std::size_t t = 0; t < 12; ++t) table().store_kv(view_of(s), s.slots[t], 16, bad.data(), bad.data());
    EXPECT_TRUE(same_bits(in_window, attend(table(), s, 20, 30, false)));
  }
}

/// A token whose key or value is not finite, and rows [first, first + 60) of one call, some of which see it.
struct spoilt_token {
  std::size_t token, first, window;
  float number;
  bool in_keys;
};

std::vector<spoilt_token> spoilt_tokens() {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<spoilt_token> all;
  for (const auto& [token, first] : {std::pair<std::size_t, std::size_t>{40, 30}, {41, 0}, {530, 500}}) {
    for (const std::size_t window : {0, 9}) {
      for (const float number : {nan, infinity, -infinity}) {
        for (const bool in_keys : {true, false}) all.push_back({token, first, window, number, in_keys});
      }
    }
  }
  return all;
}

// An answer whose numbers overflow must end with an error on every target, and its neighbors' rows must not change.
TEST_P(attention, a_token_that_is_no_number_changes_the_rows_that_see_it_and_no_others) {
  for (const auto type : all_element_types) {
    for (const spoilt_token& spoilt : spoilt_tokens()) {
      SCOPED_TRACE(::testing::Message() << "token " << spoilt.token << ", window " << spoilt.window << ", "
                                        << spoilt.number << (spoilt.in_keys ? " in keys" : " in values"));
      sequence s = make(kv_split_tokens + 90, 32, 2, type, true, false);
      s.window = spoilt.window;
      store_all(table(), s);
      const std::size_t first = spoilt.first, last = first + 60, stride = s.group * s.head_dim;
      const auto before = attend(table(), s, first, last, false);
      std::fill_n((spoilt.in_keys ? s.keys : s.values).data() + spoilt.token * s.head_dim, s.head_dim, spoilt.number);
      store_all(table(), s);
      const auto by_scalar = attend(scalar(), s, first, last, false);
      for (const bool splits_apart : {false, true}) {
        const auto found = attend(table(), s, first, last, false, splits_apart);
        for (std::size_t i = 0; i < found.size(); ++i) {
          const std::size_t row = first + i / stride;
          const bool sees_it = row >= spoilt.token && (s.window == 0 || row < spoilt.token + s.window);
          if (!sees_it) {
            ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(before[i])) << "row " << row;
          } else if (std::isnan(spoilt.number)) {
            ASSERT_TRUE(std::isnan(found[i])) << "row " << row;
          } else {
            ASSERT_EQ(std::isfinite(found[i]), std::isfinite(by_scalar[i])) << "row " << row;
          }
        }
      }
    }
  }
}

constexpr std::array integer_types = {element_type::q8_0, element_type::i16};

/// The sequence as stored, with keys rotated back.
sequence as_stored(const sequence& s, const kv_view& kv) {
  sequence stored = s;
  for (std::size_t t = 0; t < s.tokens(); ++t) {
    std::vector<float> key(s.head_dim);
    read_key(kv, s.slots[t], s.head_dim, key.data());
    read_value(kv, s.slots[t], s.head_dim, stored.values.data() + t * s.head_dim);
    const auto back = angles_at(s, s.offsets[t] - static_cast<double>(t));
    choose_table("scalar").table->rotate(s.pairs, key.data(), back.data(), s.rotary_dim, s.head_dim,
                                         stored.keys.data() + t * s.head_dim);
  }
  return stored;
}

TEST_P(attention, over_integers_is_off_by_the_rounding_of_the_query_and_the_weights) {
  for (const element_type type : integer_types) {
    for (const std::size_t head_dim : {2, 20, 64, 96, 128}) {
      for (const std::size_t tokens : {1, 17, 90, 300}) {
        sequence s = make(tokens, head_dim, 3, type, true, true);
        if (head_dim == 20) s.rotary_dim = 12;
        store_all(table(), s);
        const sequence stored = as_stored(s, view_of(s));
        const std::size_t first = tokens > 20 ? tokens - 20 : 0;
        const auto found = attend(table(), s, first, tokens, true);
        for (std::size_t row = first; row < tokens; ++row) {
          const auto expected = plain_attention(stored, row);
          for (std::size_t i = 0; i < expected.size(); ++i) {
            // Steps of 1 / 32767: a score of 128 products of up to 4 is off by less than a thousandth. Steps of 1 /
            // 8191 are four times as long, and those of weights eight times.
            ASSERT_NEAR(found[(row - first) * expected.size() + i], expected[i],
                        type == element_type::q8_0 ? 5e-4 : 2e-3)
                << name_of(type) << ", head " << head_dim << ", row " << row << " of " << tokens;
          }
        }
      }
    }
  }
}

// Sums of products stay below 2^31 even with the largest keys, queries, values and weights, all of one sign.
TEST_P(attention, over_integers_sums_the_largest_of_them) {
  for (const element_type type : integer_types) {
    sequence s = make(2 * attention_block_tokens, 64, 1, type, false, false);
    s.rotary_dim = 0;
    for (auto* all : {&s.keys, &s.values, &s.q}) std::ranges::fill(*all, 0.25F);
    store_all(table(), s);
    for (const float x : attend(table(), s, s.tokens() - 1, s.tokens(), false)) ASSERT_NEAR(x, 0.25, 2e-3);
    // The first tokens score 16, the others -16.
    for (std::size_t t = 100; t < s.tokens(); ++t) {
      std::fill_n(s.keys.begin() + static_cast<std::ptrdiff_t>(t * 64), 64, -0.25F);
      std::fill_n(s.values.begin() + static_cast<std::ptrdiff_t>(t * 64), 64, -0.25F);
    }
    std::ranges::fill(s.q, 4.0F);
    store_all(table(), s);
    for (const float x : attend(table(), s, s.tokens() - 1, s.tokens(), false)) ASSERT_NEAR(x, 0.25, 2e-3);
  }
}

// In many models a first token that takes most of the attention has a value near zero.
TEST_P(attention, over_integers_keeps_light_tokens_beside_a_heavy_one_whose_value_is_nothing) {
  for (const element_type type : integer_types) {
    sequence s = make(100, 64, 1, type, false, false);
    for (std::size_t d = 0; d < 64; ++d) {
      s.q[99 * 64 + d] = s.keys[d] = d < 32 ? 1.0F : 0.0F;  // its score is 8, and the others' are about 0
      s.values[d] *= 1e-3F;
      for (std::size_t t = 1; t < 100; ++t) s.keys[t * 64 + d] *= 0.1F;
    }
    s.rotary_dim = 0;
    store_all(table(), s);
    const auto found = attend(table(), s, 99, 100, false);
    const auto expected = plain_attention(as_stored(s, view_of(s)), 99);
    double error = 0, whole = 0;
    for (std::size_t d = 0; d < 64; ++d) {
      error += std::pow(found[d] - expected[d], 2);
      whole += std::pow(expected[d], 2);
    }
    EXPECT_LT(std::sqrt(error / whole), 0.01) << name_of(type);
  }
}

TEST_P(attention, over_integers_ends_with_no_number_where_a_query_is_none) {
  for (const element_type type : integer_types) {
    for (const float bad : {nan, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
      sequence s = make(40, 64, 2, type, false, false);
      store_all(table(), s);
      s.q[39 * 128 + 5] = bad;  // in the last row's first head
      const auto found = attend(table(), s, 30, 40, false);
      for (std::size_t i = 0; i < found.size(); ++i) {
        const bool is_bad = i >= found.size() - 128 && i < found.size() - 64;
        ASSERT_EQ(std::isnan(found[i]), is_bad) << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(targets, attention,
                         ::testing::ValuesIn(targets_of_build({"scalar", "neon", "avx2", "avx512", "avx512vnni", "amx",
                                                               "amx_emulated"})),
                         target_name);
INSTANTIATE_TEST_SUITE_P(targets, twin_attention,
                         ::testing::ValuesIn(targets_of_build({"neon", "avx2", "avx512", "avx512vnni", "amx"})),
                         target_name);

class rope : public kernel_test {};

TEST_P(rope, turns_pairs_by_the_angle_and_copies_the_rest) {
  for (const rope_pairs pairs : {rope_pairs::adjacent, rope_pairs::half_split}) {
    for (const std::size_t head_dim : {2, 30, 32, 34, 64, 100}) {
      for (const std::size_t rotary : {std::size_t{2}, head_dim / 2 / 2 * 2, head_dim}) {
        const auto x = uniforms(head_dim);
        const auto angles = uniforms(rotary);
        std::vector<float> expected(head_dim, nan);
        std::vector<float> found(head_dim, nan);
        scalar().rotate(pairs, x.data(), angles.data(), rotary, head_dim, expected.data());
        table().rotate(pairs, x.data(), angles.data(), rotary, head_dim, found.data());
        ASSERT_TRUE(same_bits(expected, found));
        auto in_place = x;
        table().rotate(pairs, in_place.data(), angles.data(), rotary, head_dim, in_place.data());
        ASSERT_TRUE(same_bits(expected, in_place));
        for (std::size_t i = 0; i < rotary / 2; ++i) {
          const std::size_t a = pairs == rope_pairs::adjacent ? 2 * i : i;
          const std::size_t b = pairs == rope_pairs::adjacent ? 2 * i + 1 : i + rotary / 2;
          ASSERT_NEAR(found[a], x[a] * angles[i] - x[b] * angles[rotary / 2 + i], 1e-6);
          ASSERT_NEAR(found[b], x[a] * angles[rotary / 2 + i] + x[b] * angles[i], 1e-6);
        }
        for (std::size_t i = rotary; i < head_dim; ++i) ASSERT_EQ(found[i], x[i]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(targets, rope, ::testing::ValuesIn(targets_of_build({"scalar", "neon", "avx2", "avx512"})),
                         target_name);

}  // namespace
}  // namespace redline::kernels
