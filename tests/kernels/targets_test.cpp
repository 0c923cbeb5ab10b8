#include <bit>
#include <cstdlib>
#include <fstream>
#include <map>
#include <span>
#include <sstream>

#include "kernels/grid_blocks.hpp"
#include "kernels/int8_tables.hpp"
#include "kernels/packed_weights.hpp"
#include "kernels/prepared_rows.hpp"
#include "kernels/weight_blocks.hpp"
#include "kernels/worker_team.hpp"
#include "tests/kernels/kernel_fixture.hpp"
#include "tests/support/test_data.hpp"

namespace redline::kernels {
namespace {

/// FNV-1a over bits, not over bytes in memory.
class digest {
 public:
  void add(std::span<const float> numbers) {
    for (const float x : numbers) add(std::bit_cast<std::uint32_t>(x), 4);
  }
  void add(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) add(std::to_integer<std::uint32_t>(b), 1);
  }
  [[nodiscard]] std::string text() const {
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash_));
    return hex;
  }

 private:
  void add(std::uint32_t word, int bytes) {
    for (int i = 0; i < bytes; ++i) hash_ = (hash_ ^ (word >> 8 * i & 0xff)) * 1099511628211U;
  }
  std::uint64_t hash_ = 14695981039346656037U;
};

/// Digests of a target's results for numbers that are the same everywhere. There is no NaN: its bits are the CPU's.
class targets : public kernel_test {
 protected:
  std::map<std::string, std::string> digests() {
    digest_products();
    digest_rows();
    digest_caches();
    digest_recurrence();
    return found_;
  }

 private:
  void keep(const std::string& name, const digest& d) { found_[name] = d.text(); }

  void digest_products() {
    constexpr std::size_t outputs = 90, columns = 512;
    for (const weight_type type : all_weight_types) {
      const auto before = random_;  // later numbers must not depend on types that are only read
      std::vector<std::byte> rows(outputs * row_bytes(type, columns));
      for (std::size_t r = 0; r < outputs && is_written(type); ++r) {
        quantize_row(type, uniforms(columns).data(), columns, rows.data() + r * row_bytes(type, columns));
      }
      if (!is_written(type)) {
        for (std::byte& b : rows) b = static_cast<std::byte>(random_());
        for (std::size_t at = 0; at < rows.size(); at += block_bytes(type)) {
          put_grid_scale(type, uniform() / 100, rows.data() + at);
        }
      }
      digest quantised, unpacked, products;
      quantised.add(rows);
      const packed_weights w(table(), team_, type, outputs, columns, rows.data());
      std::vector<float> row(columns);
      for (std::size_t r = 0; r < outputs; ++r) {
        table().unpack_row(w.view(), r, row.data());
        unpacked.add(row);
      }
      const auto bias = uniforms(outputs);
      for (const std::size_t count : {1, 2, 7, 30}) {
        const auto x = uniforms(count * columns);
        std::vector<float> y(count * outputs, nan);
        table().gemm({.w = w.view(),
                      .panel_begin = 0,
                      .panel_end = panels_for(outputs),
                      .x = x.data(),
                      .x_stride = columns,
                      .rows = count,
                      .y = y.data(),
                      .y_stride = outputs,
                      .bias = count == 7 ? nullptr : bias.data()});
        products.add(y);
      }
      const std::string name(name_of(type));
      if (is_written(type)) keep(name + "/quantised", quantised);
      keep(name + "/unpacked", unpacked);
      keep(name + "/products", products);
      if (block_columns(type) > 1) keep(name + "/integers", digest_integers(w));
      if (!is_written(type)) random_ = before;
    }
  }

  digest digest_integers(const packed_weights& w) {
    const kernel_table& integers = *int8_table_of(table());
    const auto before = random_;  // later numbers must not depend on this
    digest d;
    for (const std::size_t count : {1, 2, 7, 30}) {
      const auto x = uniforms(count * w.columns());
      const prepared_rows prepared(integers, x.data(), w.columns(), count, w.columns());
      std::vector<float> y(count * w.rows(), nan);
      integers.gemm({.w = w.view(),
                     .panel_begin = 0,
                     .panel_end = panels_for(w.rows()),
                     .x = x.data(),
                     .x_stride = w.columns(),
                     .rows = count,
                     .y = y.data(),
                     .y_stride = w.rows(),
                     .prepared = prepared.data()});
      d.add(y);
    }
    random_ = before;
    return d;
  }

  void digest_rows() {
    constexpr std::size_t n = 1003;
    const auto x = uniforms(n), weight = uniforms(n), bias = uniforms(n);
    std::vector<float> wide(n), out(n);
    for (std::size_t i = 0; i < n; ++i) wide[i] = x[i] * 40;
    const auto keep_row = [&](const std::string& name) {
      digest d;
      d.add(out);
      keep("rows/" + name, d);
    };
    table().rms_norm(x.data(), weight.data(), 1e-6F, n, out.data());
    keep_row("rms_norm");
    table().layer_norm(x.data(), weight.data(), bias.data(), 1e-5F, n, out.data());
    keep_row("layer_norm");
    out = x;
    table().add_scaled(out.data(), 0.3F, weight.data(), n);
    keep_row("add_scaled");
    table().softmax(out.data(), n);
    keep_row("softmax");
    out = wide;
    table().silu_multiply(out.data(), x.data(), n);
    keep_row("silu_multiply");
    out = wide;
    table().gelu_multiply(out.data(), x.data(), n);
    keep_row("gelu_multiply");
    out = wide;
    table().clamped_swiglu(out.data(), x.data(), n);
    keep_row("clamped_swiglu");
    out = wide;
    table().soft_cap(out.data(), 30, n);
    keep_row("soft_cap");
    for (const rope_pairs pairs : {rope_pairs::adjacent, rope_pairs::half_split}) {
      table().rotate(pairs, x.data(), weight.data(), 600, n, out.data());
      keep_row(pairs == rope_pairs::adjacent ? "rotate_adjacent" : "rotate_half_split");
    }
    for (const element_type type : all_element_types) {
      if (holds_integers(type)) continue;  // these types have no single numbers
      // The range extends from the smallest halves beyond the largest.
      for (std::size_t i = 0; i < n; ++i) wide[i] = std::ldexp(x[i], static_cast<int>(i % 50) - 30);
      std::vector<std::byte> narrow(n * bytes_of(type));
      table().narrow(type, wide.data(), n, narrow.data());
      table().widen(type, narrow.data(), n, out.data());
      keep_row("narrow_and_widen_" + std::string(name_of(type)));
    }
  }

  /// Five rows through a state of 64 x 64, of which three change it; the operations around them.
  void digest_recurrence() {
    constexpr std::size_t n = 64, rows = 5, kept = 3, taps = 4;
    std::vector<float> state = uniforms(n * n), scratch(n * delta_columns), changes(rows * n), out(rows * n);
    auto keys = uniforms(rows * n), queries = uniforms(rows * n), values = uniforms(rows * n);
    for (float& key : keys) key /= 8;
    std::vector<delta_row> all;
    const float* inputs[taps];
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t at = i * n;
      all.push_back({queries.data() + at, keys.data() + at, values.data() + at, 0.9F - 0.1F * static_cast<float>(i),
                     0.7F, changes.data() + at, out.data() + at});
      if (i < taps) inputs[i] = values.data() + at;
    }
    table().delta_rule({.state = state.data(),
                        .head_dim = n,
                        .rows = all.data(),
                        .row_count = rows,
                        .kept_count = kept,
                        .group_end = n / delta_columns,
                        .scratch = scratch.data()});
    digest states, outputs, mixed;
    states.add(state);
    outputs.add(out);
    table().convolve(inputs, queries.data(), taps, n, true, out.data());
    table().sigmoid_multiply(values.data(), out.data(), n);
    mixed.add(out);
    keep("recurrence/state", states);
    keep("recurrence/outputs", outputs);
    keep("recurrence/convolution_and_gate", mixed);
  }

  /// 300 tokens in pages in reverse order, the last 7 attending; then their keys are rotated.
  void digest_caches() {
    constexpr std::size_t tokens = 300, rows = 7, group = 3, head_dim = 80, pages = 10;
    for (const element_type type : all_element_types) {
      const std::size_t stride = kv_head_bytes(type, head_dim);
      const memory_block storage(pages * stride);
      const kv_view kv{storage.data(), storage.data() + round_up(kv_key_bytes(type, head_dim), 64), stride, type};
      std::vector<attention_tile> tiles;
      for (std::uint32_t t = 0; t < tokens; ++t) {
        const auto slot =
            static_cast<std::uint32_t>((pages - 1 - t / kv_page_tokens) * kv_page_tokens + t % kv_page_tokens);
        const auto key = uniforms(head_dim), value = uniforms(head_dim);
        table().store_kv(kv, slot, head_dim, key.data(), value.data());
        if (t % tile_tokens == 0) tiles.push_back({.first_slot = slot, .first_token = t});
        ++tiles.back().count;
      }
      const auto angles = uniforms(head_dim), q = uniforms(rows * group * head_dim);
      const std::vector<rope_angles> same(rows, angles.data());
      std::vector<float> out(rows * group * head_dim, nan);
      const memory_block scratch(attention_scratch_floats(rows, group, head_dim, 1) * sizeof(float));
      attention_args a{.q = q.data(),
                       .q_stride = group * head_dim,
                       .out = out.data(),
                       .out_stride = group * head_dim,
                       .rows = rows,
                       .group = group,
                       .head_dim = head_dim,
                       .rotary_dim = head_dim,
                       .scale = 2,
                       .visible = tokens - rows + 1,
                       .tiles = tiles.data(),
                       .tile_count = tiles.size(),
                       .angles = same.data(),
                       .angles_stride = rows,
                       .offset_count = 1,
                       .kv = kv,
                       .scratch = reinterpret_cast<float*>(scratch.data())};
      digest attended, windowed, turned;
      table().attention(a);
      attended.add(out);
      a.window = 171;
      a.soft_cap = 5;
      a.sinks = angles.data();
      table().attention(a);
      windowed.add(out);
      for (const rope_pairs pairs : {rope_pairs::adjacent, rope_pairs::half_split}) {
        table().rotate_keys(kv, 37, 100, pairs, angles.data(), head_dim, head_dim);
        turned.add(std::span(storage.data(), storage.size()));
      }
      keep("attention/" + std::string(name_of(type)), attended);
      keep("attention_extras/" + std::string(name_of(type)), windowed);
      keep("keys_turned/" + std::string(name_of(type)), turned);
    }
  }

  std::map<std::string, std::string> found_;
  worker_team team_{1};
};

// `scalar` wrote the file on x86-64, and aarch64 reads the same file. REDLINE_GOLDEN=write rewrites it, which means
// that models answer differently.
TEST_P(targets, give_the_bits_of_every_other_cpu) {
  const std::string path = test::source_path("tests/kernels/reference/target_digests.txt");
  const auto found = digests();
  const char* mode = std::getenv("REDLINE_GOLDEN");
  if (mode != nullptr && mode == std::string("write") && GetParam() == std::string("scalar")) {
    std::ofstream out(path);
    for (const auto& [name, text] : found) out << name << " " << text << "\n";
  }
  std::map<std::string, std::string> expected;
  std::istringstream lines(test::read_file(path));
  for (std::string name, text; lines >> name >> text;) expected[name] = text;
  ASSERT_GT(expected.size(), 40U);
  EXPECT_EQ(expected, found);
}

INSTANTIATE_TEST_SUITE_P(exact, targets,
                         ::testing::ValuesIn(targets_of_build({"scalar", "neon", "avx2", "avx512", "avx512vnni"})),
                         target_name);

}  // namespace
}  // namespace redline::kernels
