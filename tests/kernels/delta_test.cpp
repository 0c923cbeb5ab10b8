#include <algorithm>

#include "tests/kernels/kernel_fixture.hpp"

namespace redline::kernels {
namespace {

constexpr std::size_t head_dim = 64, rows_max = 12;

class delta : public kernel_test {
 protected:
  struct rows {
    std::vector<float> queries, keys, values, decays, strengths;
  };
  rows random_rows() {
    rows r{uniforms(rows_max * head_dim), uniforms(rows_max * head_dim), uniforms(rows_max * head_dim), {}, {}};
    for (auto* each : {&r.queries, &r.keys}) {
      for (float& v : *each) v /= 6;
    }
    for (std::size_t i = 0; i < rows_max; ++i) {
      r.decays.push_back(0.75F + 0.25F * uniform());
      r.strengths.push_back(0.5F + 0.5F * uniform());
    }
    return r;
  }

  /// What a sequence has: its state, and the changes that are not in it yet.
  struct memory {
    std::vector<float> state = std::vector<float>(head_dim * head_dim);
    std::vector<std::size_t> pending;  // rows
    std::vector<float> changes = std::vector<float>(rows_max * head_dim);
  };
  /// Runs rows [first, end), of which those before `kept_end` change the state. Returns the outputs.
  static std::vector<float> run(const kernel_table& table, const rows& r, std::size_t first, std::size_t end,
                                std::size_t kept_end, memory& m, std::size_t groups_together = 2) {
    std::vector<float> out((end - first) * head_dim), scratch(head_dim * delta_columns, nan);
    std::vector<delta_update> updates;
    for (const std::size_t i : m.pending)
      updates.push_back({r.keys.data() + i * head_dim, m.changes.data() + i * head_dim, r.decays[i]});
    std::vector<delta_row> all;
    for (std::size_t i = first; i < end; ++i) {
      all.push_back({.query = r.queries.data() + i * head_dim,
                     .key = r.keys.data() + i * head_dim,
                     .value = r.values.data() + i * head_dim,
                     .decay = r.decays[i],
                     .strength = r.strengths[i],
                     .change = m.changes.data() + i * head_dim,
                     .out = out.data() + (i - first) * head_dim});
    }
    for (std::size_t group = 0; group < head_dim / delta_columns; group += groups_together) {
      table.delta_rule({.state = m.state.data(),
                        .head_dim = head_dim,
                        .updates = updates.data(),
                        .update_count = updates.size(),
                        .rows = all.data(),
                        .row_count = all.size(),
                        .kept_count = kept_end - first,
                        .group_begin = group,
                        .group_end = group + groups_together,
                        .scratch = scratch.data()});
    }
    m.pending.clear();
    for (std::size_t i = kept_end; i < end; ++i) m.pending.push_back(i);
    return out;
  }
};

TEST_P(delta, outputs_and_states_equal_the_definition) {
  const auto r = random_rows();
  memory m, by_scalar;
  const auto out = run(table(), r, 0, rows_max, rows_max, m);
  EXPECT_TRUE(same_bits(out, run(scalar(), r, 0, rows_max, rows_max, by_scalar)));
  EXPECT_TRUE(same_bits(m.state, by_scalar.state));
  std::vector<double> state(head_dim * head_dim);  // [keys][values]
  for (std::size_t t = 0; t < rows_max; ++t) {
    const auto at = [&](const std::vector<float>& all, std::size_t i) { return double{all[t * head_dim + i]}; };
    for (double& s : state) s *= r.decays[t];
    for (std::size_t j = 0; j < head_dim; ++j) {
      double known = 0, seen = 0;
      for (std::size_t i = 0; i < head_dim; ++i) known += at(r.keys, i) * state[i * head_dim + j];
      const double change = r.strengths[t] * (at(r.values, j) - known);
      for (std::size_t i = 0; i < head_dim; ++i) state[i * head_dim + j] += at(r.keys, i) * change;
      for (std::size_t i = 0; i < head_dim; ++i) seen += at(r.queries, i) * state[i * head_dim + j];
      ASSERT_NEAR(out[t * head_dim + j], seen, 1e-5) << "row " << t << ", value " << j;
    }
  }
  for (std::size_t i = 0; i < head_dim; ++i) {
    for (std::size_t j = 0; j < head_dim; ++j) {
      const std::size_t group = j / delta_columns;
      const float found = m.state[(group * head_dim + i) * delta_columns + j % delta_columns];
      ASSERT_NEAR(found, state[i * head_dim + j], 1e-5);
    }
  }
}

// Rows that are drafts change nothing; those that are accepted later are applied from what was noted of them.
TEST_P(delta, the_bits_do_not_depend_on_how_rows_are_cut_or_whether_they_were_drafts) {
  const auto r = random_rows();
  memory whole;
  const auto expected = run(table(), r, 0, rows_max, rows_max, whole);
  for (int round = 0; round < 50; ++round) {
    memory m;
    std::vector<float> found;
    while (found.size() < expected.size()) {
      const std::size_t first = found.size() / head_dim, end = first + 1 + below(rows_max - first);
      const std::size_t kept_end = first + below(end - first + 1);
      const auto out = run(table(), r, first, end, kept_end, m, 1 + below(2));
      // Some of the rows that were not kept are taken back.
      const std::size_t accepted = std::max(kept_end, first + 1 + below(end - first));
      std::erase_if(m.pending, [&](std::size_t i) { return i >= accepted; });
      found.insert(found.end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>((accepted - first) * head_dim));
    }
    ASSERT_TRUE(same_bits(found, expected));
    (void)run(table(), r, rows_max, rows_max, rows_max, m);
    ASSERT_TRUE(same_bits(m.state, whole.state));
  }
}

TEST_P(delta, a_convolution_of_channels_and_its_silu_equal_the_definition) {
  for (const std::size_t n : ragged_sizes()) {
    constexpr std::size_t taps = 4;
    const auto x = uniforms(taps * n + 1), weights = uniforms(taps * n + 1);
    const float* rows[taps];
    for (std::size_t t = 0; t < taps; ++t) rows[t] = x.data() + t * n;
    std::vector<float> expected(n + 1, nan), found(n + 1, nan);
    std::vector<float> plain(n + 1, nan), expected_plain(n + 1, nan);
    scalar().convolve(rows, weights.data(), taps, n, false, expected_plain.data());
    table().convolve(rows, weights.data(), taps, n, false, plain.data());
    ASSERT_TRUE(same_bits(expected_plain, plain)) << n;
    scalar().convolve(rows, weights.data(), taps, n, true, expected.data());
    table().convolve(rows, weights.data(), taps, n, true, found.data());
    ASSERT_TRUE(same_bits(expected, found)) << n;
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (std::size_t t = 0; t < taps; ++t) sum += double{weights[t * n + i]} * rows[t][i];
      ASSERT_NEAR(found[i], sum / (1 + std::exp(-sum)), 1e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(targets, delta, ::testing::ValuesIn(targets_of_build({"scalar", "neon", "avx2", "avx512"})),
                         target_name);

}  // namespace
}  // namespace redline::kernels
