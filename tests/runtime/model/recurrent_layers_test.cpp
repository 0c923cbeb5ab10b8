// Recurrent layers: however a sequence is cut into passes, whatever shares them, and whatever is drafted and taken
// back, its rows have the same bits.

#include "runtime/model/recurrent_layers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "kernels/dispatch.hpp"
#include "kernels/int8_tables.hpp"
#include "runtime/kv/page_pool.hpp"
#include "runtime/model/transformer.hpp"
#include "tests/support/kernel_targets.hpp"
#include "tests/support/missing_instructions.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::model {
namespace {

constexpr std::uint32_t pages_count = 8, slots_count = 6, records_max = 9;
constexpr std::size_t logits_width = test::tiny_model::vocabulary;

std::vector<token> random_text(std::mt19937& random, std::size_t count) {
  std::vector<token> out(count);
  for (token& t : out) t = static_cast<token>(random() % logits_width);
  return out;
}

class model_with_states {
 public:
  model_with_states(const kernels::kernel_table& table, std::uint32_t threads, const test::tiny_shape& shape)
      : team_(threads), pool_(pages_count) {
    auto w = load_weights(*test::make_tiny_model(shape).file(), table, team_);
    EXPECT_TRUE(w) << w.error().describe();
    const transformer::options how{.pages_count = pages_count,
                                   .state_slots = slots_count,
                                   .records_max = records_max,
                                   .kv = kv_type::f32,
                                   .rows_max = 128};
    model_ = *transformer::create(*w, table, team_, how);
  }

  transformer& model() { return *model_; }
  kv::page_pool& pool() { return pool_; }

 private:
  kernels::worker_team team_;
  kv::page_pool pool_;
  std::unique_ptr<transformer> model_;
};

/// A sequence that grows by runs of which a part is taken back.
struct sequence {
  std::vector<token> tokens;  // the right ones
  std::uint32_t slot = 0;
  std::uint32_t known = 0;         // of them computed and accepted
  std::uint32_t records = 0;       // of those not yet in the state
  std::vector<float> logits = {};  // of the accepted rows
  kv::page_table pages = {};
  std::uint32_t saved = 0;  // tokens of the state in slot + 3

  /// Goes back to the saved state.
  void restore(model_with_states& m) {
    const kv::state_copy copy{slot + 3, slot};
    m.model().copy_states({&copy, 1});
    known = saved;
    records = 0;
    logits.resize(known * logits_width);
    pages.truncate(m.pool(), known);
  }
};
/// What a sequence does in one pass.
struct step {
  sequence* of = nullptr;
  std::vector<token> tokens = {};  // `right` right ones, then others
  std::uint32_t right = 0, kept = 0;
  std::uint32_t saves = 0;  // the state is saved after so many records and kept rows; 0 means never
  std::vector<kv::piece> table = {};
};

void forward(model_with_states& m, std::vector<step>& steps) {
  std::vector<run> batch;
  for (step& s : steps) {
    const auto count = static_cast<std::uint32_t>(s.tokens.size());
    ASSERT_TRUE(s.of->pages.insert(m.pool(), s.of->known, count));
    s.table = s.of->pages.prefix(s.of->known + count);
    batch.push_back(
        {.tokens = s.tokens,
         .first_position = static_cast<position>(s.of->known),
         .table = s.table,
         .state = {.slot = s.of->slot, .begins = s.of->known == 0, .records = s.of->records, .kept = s.kept}});
    if (s.saves == 0) continue;
    batch.back().state.snapshots = {{s.saves, s.of->slot + 3}};
    s.of->saved = s.of->known - s.of->records + s.saves;
  }
  const auto logits = m.model().forward(batch);
  std::size_t row = 0;
  for (step& s : steps) {
    const auto from = logits.begin() + static_cast<std::ptrdiff_t>(row * logits_width);
    s.of->logits.insert(s.of->logits.end(), from, from + static_cast<std::ptrdiff_t>(s.right * logits_width));
    row += s.tokens.size();
    s.of->known += s.right;
    s.of->records = s.right - s.kept;
    s.of->pages.truncate(m.pool(), s.of->known);
  }
}

std::vector<float> whole(model_with_states& m, const std::vector<token>& tokens) {
  sequence all{.tokens = tokens};
  const auto count = static_cast<std::uint32_t>(tokens.size());
  std::vector<step> one{{&all, tokens, count, count}};
  forward(m, one);
  all.pages.clear(m.pool());
  return all.logits;
}

void expect_same_in_any_pieces(std::uint32_t threads, const test::tiny_shape& shape, bool by_integers = false) {
  SCOPED_TRACE(std::to_string(threads) + (by_integers ? " by integers" : ""));
  const auto& floats = *kernels::process_table().table;
  const auto* const integers = by_integers ? kernels::int8_table_of(floats) : nullptr;
  model_with_states m(kernels::table_for_cache(integers != nullptr ? *integers : floats, kv_type::f32), threads, shape);
  std::mt19937 random(threads);
  std::vector<std::vector<token>> texts;
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < 3; ++i) {
    texts.push_back(random_text(random, 20 + 17 * static_cast<std::size_t>(i)));
    expected.push_back(whole(m, texts.back()));
  }
  for (int round = 0; round < 12; ++round) {
    std::vector<sequence> all;
    for (std::uint32_t i = 0; i < texts.size(); ++i) all.push_back({.tokens = texts[i], .slot = (i + round) % 3});
    for (bool goes_on = true; goes_on;) {
      std::vector<step> steps;
      for (sequence& s : all) {
        if (s.saved > 0 && random() % 12 == 0) s.restore(m);
        const auto left = static_cast<std::uint32_t>(s.tokens.size()) - s.known;
        if (left == 0 || random() % 4 == 0) continue;
        step next{.of = &s, .right = 1 + static_cast<std::uint32_t>(random()) % std::min(left, 12U)};
        const auto from = s.tokens.begin() + s.known;
        next.tokens.assign(from, from + next.right);
        const auto wrong = random_text(random, random() % 4);
        next.tokens.insert(next.tokens.end(), wrong.begin(), wrong.end());
        const auto count = static_cast<std::uint32_t>(next.tokens.size());
        const std::uint32_t least = count - std::min(count, records_max);
        next.kept = least + static_cast<std::uint32_t>(random()) % (next.right - std::min(next.right, least) + 1);
        if (next.kept > next.right) continue;
        const std::uint32_t most = s.records + next.kept;
        if (most > 0 && random() % 3 == 0) next.saves = 1 + static_cast<std::uint32_t>(random()) % most;
        steps.push_back(std::move(next));
      }
      std::shuffle(steps.begin(), steps.end(), random);
      forward(m, steps);
      goes_on = std::ranges::any_of(all, [](const sequence& s) { return s.known < s.tokens.size(); });
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i].logits.size(), expected[i].size());
      ASSERT_EQ(std::memcmp(all[i].logits.data(), expected[i].data(), expected[i].size() * sizeof(float)), 0)
          << "round " << round << ", sequence " << i;
      all[i].pages.clear(m.pool());
    }
  }
}

/// A shape of each family with recurrent layers.
std::vector<test::tiny_shape> shapes_with_states(std::uint32_t layers) {
  std::vector<test::tiny_shape> all;
  for (const architecture::family& f : architecture::families()) {
    if (!f.has_states()) continue;
    test::tiny_shape& s = all.emplace_back(test::tiny_shape{.architecture = std::string(f.name), .layers = layers});
    if (f.needs_experts) s.experts = 5;
    if (f.has(architecture::role::shared_router)) s.shared_feed_forward = 64;
    if (f.says_mixture) s.dense_layers = 1;
  }
  return all;
}

TEST(recurrent_layers, a_sequence_has_the_same_bits_in_any_pieces_batches_and_drafts) {
  for (const test::tiny_shape& shape : shapes_with_states(2)) {
    SCOPED_TRACE(shape.architecture);
    for (const std::uint32_t threads : {1U, 3U}) expect_same_in_any_pieces(threads, shape);
  }
}

TEST(recurrent_layers, every_kernel_target_gives_the_same_bits) {
  std::mt19937 random(4);
  const auto tokens = random_text(random, 30);
  for (test::tiny_shape shape : shapes_with_states(3)) {
    SCOPED_TRACE(shape.architecture);
    shape.delta_head_dim = 64;
    std::vector<float> expected;
    for (const char* target : test::targets_of_build({"scalar", "neon", "avx2", "avx512", "avx512vnni"})) {
      const auto choice = test::choose_table_or_emulate(target);
      if (choice.table == nullptr || !choice.table->one_chain) continue;
      model_with_states m(kernels::table_for_cache(*choice.table, kv_type::f32), 2, shape);
      const auto found = whole(m, tokens);
      if (expected.empty()) expected = found;
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0) << target;
    }
    EXPECT_FALSE(expected.empty());
  }
}

// The last layer has a state here, and only some rows want logits.
TEST(recurrent_layers, the_last_layer_may_have_a_state) {
  for (const test::tiny_shape& shape : shapes_with_states(3)) {
    SCOPED_TRACE(shape.architecture);
    model_with_states m(kernels::table_for_cache(*kernels::process_table().table, kv_type::f32), 1, shape);
    std::mt19937 random(4);
    const auto tokens = random_text(random, 30);
    const auto expected = whole(m, tokens);
    sequence s{.tokens = tokens};
    ASSERT_TRUE(s.pages.insert(m.pool(), 0, 30));
    const auto table = s.pages.prefix(30);
    const run r{.tokens = tokens, .table = table, .logits_begin = 27, .state = {.kept = 30}};
    const auto last = m.model().forward({&r, 1});
    ASSERT_EQ(last.size(), 3 * logits_width);
    EXPECT_EQ(std::memcmp(last.data(), expected.data() + 27 * logits_width, last.size_bytes()), 0);
    s.pages.clear(m.pool());
  }
}

TEST(recurrent_layers, a_model_with_states_is_refused_without_slots_for_them) {
  kernels::worker_team team(1);
  const auto& table = *kernels::process_table().table;
  const auto w = *load_weights(*test::make_tiny_model({.architecture = "qwen35"}).file(), table, team);
  const auto made = transformer::create(w, table, team, {.pages_count = 1});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().context.find("qwen35"), std::string::npos) << made.error().context;
}

// Products of integers round by row, so they depend on the row only; every type of weights is read.
TEST(recurrent_layers, quantized_weights_and_integer_products_give_the_same_bits_in_any_pieces) {
  using enum gguf::tensor_type;
  for (const auto type : {q8_0, q4_k, iq4_xs}) {
    const test::tiny_shape shape{.architecture = "qwen35",
                                 .width = 256,
                                 .heads = 16,
                                 .feed_forward = 256,
                                 .matrices = type,
                                 .delta_head_dim = 64};
    expect_same_in_any_pieces(2, shape);
    expect_same_in_any_pieces(2, shape, true);
  }
}

TEST(recurrent_layers, a_slot_has_the_bytes_of_its_shape) {
  const auto shape = *architecture::read_shape(*test::make_tiny_model({.architecture = "qwen35"}).file());
  ASSERT_TRUE(shape.delta);
  EXPECT_EQ(shape.attention_layers(), 1U);
  const std::uint64_t channels = 8 * 32, matrices = 4 * 32 * 32;
  EXPECT_EQ(state_bytes(shape, 0), 4 * (matrices + 3 * channels));
  EXPECT_EQ(state_bytes(shape, 16), 4 * (matrices + 3 * channels + 16 * (channels + 2 * 32 + 4 * 32 + 4)));
  const auto convolution = *architecture::read_shape(*test::make_tiny_model({.architecture = "lfm2"}).file());
  EXPECT_EQ(state_bytes(convolution, 0), 4 * 2 * 64U);
  EXPECT_EQ(state_bytes(convolution, 16), 4 * (2 + 16) * 64U);
}

}  // namespace
}  // namespace redline::model
