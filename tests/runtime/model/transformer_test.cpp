#include "runtime/model/transformer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "kernels/int8_tables.hpp"
#include "runtime/kv/page_pool.hpp"
#include "runtime/model/feed_forward.hpp"
#include "runtime/sampling/sampling.hpp"
#include "tests/support/kernel_targets.hpp"
#include "tests/support/missing_instructions.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::model {
namespace {

using std::string_view_literals::operator""sv;
using test::tiny_shape;

/// A token range of a sequence whose keys count as moved.
struct shift {
  std::uint32_t end = 0;  // end of the range, which starts where the one before ends
  std::int32_t offset = 0;
};

/// The same slots, cut at the ends of the shifts, which set their offsets, and at random positions.
std::vector<kv::piece> cut(std::span<const kv::piece> pieces, std::span<const shift> shifts, std::mt19937* random) {
  std::vector<kv::piece> result;
  std::uint32_t index = 0;
  for (const kv::piece& p : pieces) {
    for (std::uint32_t done = 0; done < p.count;) {
      std::uint32_t length = p.count - done;
      std::int32_t offset = 0;
      for (const shift& s : shifts) {
        if (index >= s.end) continue;
        length = std::min(length, s.end - index);
        offset = s.offset;
        break;
      }
      if (random != nullptr && (*random)() % 2 == 0) length = 1 + (*random)() % length;
      result.push_back({p.first_slot + done, length, offset});
      done += length;
      index += length;
    }
  }
  return result;
}

std::vector<token> random_tokens(std::mt19937& random, std::size_t count) {
  std::vector<token> tokens(count);
  for (token& t : tokens) t = static_cast<token>(random() % test::tiny_model::vocabulary);
  return tokens;
}

std::shared_ptr<const weights> load(const tiny_shape& shape, const kernels::kernel_table& table,
                                    kernels::worker_team& team) {
  auto loaded = load_weights(*test::make_tiny_model(shape).file(), table, team);
  if (!loaded) throw std::runtime_error(loaded.error().describe());
  return *loaded;
}

std::unique_ptr<transformer> make(std::shared_ptr<const weights> w, const kernels::kernel_table& table,
                                  kernels::worker_team& team, kv_type type, std::uint32_t pages = 16,
                                  std::uint32_t window_pages = 0) {
  auto t = transformer::create(
      std::move(w), table, team,
      {.pages_count = pages, .window_pages_count = window_pages, .state_slots = 1, .kv = type, .rows_max = 256});
  if (!t) throw std::runtime_error(t.error().describe());
  return std::move(*t);
}

constexpr std::size_t vocabulary = test::tiny_model::vocabulary;

/// The logits of every token, computed in one run over one piece of storage.
std::vector<float> alone(std::shared_ptr<const weights> w, const kernels::kernel_table& table, kv_type type,
                         std::span<const token> tokens, std::span<const shift> shifts = {},
                         position first_position = 0) {
  kernels::worker_team team(1);
  const auto t = make(std::move(w), table, team, type);
  kv::page_pool pool(16);
  kv::page_table pages;
  EXPECT_TRUE(pages.append(pool, static_cast<std::uint32_t>(tokens.size())));
  const auto pieces = cut(pages.pieces(), shifts, nullptr);
  const run r{.tokens = tokens,
              .first_position = first_position,
              .table = pieces,
              .state = {.kept = static_cast<std::uint32_t>(tokens.size())}};
  const auto logits = t->forward({&r, 1});
  return {logits.begin(), logits.end()};
}

TEST(transformer, any_rows_of_the_head_are_those_of_a_whole_pass) {
  const kernels::kernel_table& table = *kernels::process_table().table;
  std::mt19937 random(8);
  for (const std::uint32_t threads : {1, 3}) {
    for (const tiny_shape& shape :
         {tiny_shape{}, tiny_shape{.architecture = "granite"}, tiny_shape{.architecture = "gemma2"}}) {
      kernels::worker_team team(threads);
      const auto w = load(shape, table, team);
      const auto tokens = random_tokens(random, 30);
      const auto expected = alone(w, table, kv_type::f32, tokens);
      const auto t = make(w, table, team, kv_type::f32);
      kv::page_pool pool(16);
      kv::page_table pages;
      ASSERT_TRUE(pages.append(pool, 30));
      const run r{tokens, 0, pages.pieces(), 4};
      ASSERT_EQ(t->forward_body({&r, 1}), 26U);
      for (int trial = 0; trial < 10; ++trial) {
        std::vector<std::uint32_t> rows(1 + random() % 20);
        for (auto& row : rows) row = random() % 26;
        const auto logits = t->logits_of(rows);
        ASSERT_EQ(logits.size(), rows.size() * vocabulary);
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const auto whole = std::span(expected).subspan((rows[i] + 4) * vocabulary, vocabulary);
          ASSERT_EQ(std::memcmp(whole.data(), logits.data() + i * vocabulary, vocabulary * sizeof(float)), 0);
        }
        const auto best = t->best_of(rows);
        ASSERT_EQ(best.size(), rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const auto whole = std::span(expected).subspan((rows[i] + 4) * vocabulary, vocabulary);
          const auto most = std::ranges::max_element(whole);
          EXPECT_EQ(best[i].value, *most);
          EXPECT_EQ(best[i].index, static_cast<std::uint32_t>(most - whole.begin()));
        }
      }
    }
  }
}

/// A sequence that is computed in random batches.
struct traveller {
  std::vector<token> tokens;
  std::vector<shift> shifts;
  std::vector<float> expected;  // [tokens, vocabulary]
  kv::page_table pages;
  std::uint32_t computed = 0;

  // The current batch:
  std::vector<token> fed;
  std::vector<kv::piece> pieces, window_pieces;
  std::uint32_t right = 0;  // how many tokens at the start of `fed` are the sequence's own
};

/// Runs random mixtures of decode rows, chunks and drafts with wrong tails (rolled back afterwards) until all are done.
void travel(transformer& t, std::vector<traveller>& all, kv::page_pool& pool, std::mt19937& random) {
  while (std::any_of(all.begin(), all.end(), [](const auto& s) { return s.computed < s.tokens.size(); })) {
    std::vector<run> batch;
    std::vector<traveller*> who;
    for (traveller& s : all) {
      const auto left = static_cast<std::uint32_t>(s.tokens.size()) - s.computed;
      if (left == 0 || random() % 3 == 0) continue;
      s.right = random() % 3 == 0 ? 1 : 1 + random() % std::min(left, 40U);
      s.fed.assign(s.tokens.begin() + s.computed, s.tokens.begin() + s.computed + s.right);
      const auto wrong = random_tokens(random, random() % 3 == 0 ? random() % 9 : 0);
      s.fed.insert(s.fed.end(), wrong.begin(), wrong.end());
      if (const kv::window_pages* windows = pool.windows()) {
        s.pages.hold_windows(pool, s.computed);
        ASSERT_TRUE(s.pages.has_windows(pool, windows->first_seen(s.computed), s.computed))
            << "it has been reserved since then";
      }
      if (!s.pages.append(pool, static_cast<std::uint32_t>(s.fed.size()))) continue;
      s.pieces = cut(s.pages.pieces(), s.shifts, &random);
      const auto size = static_cast<std::uint32_t>(s.fed.size());
      batch.push_back({s.fed, static_cast<position>(s.computed), s.pieces,
                       random() % 2 == 0 ? 0U : static_cast<std::uint32_t>(random() % (size + 1))});
      who.push_back(&s);
      if (const kv::window_pages* windows = pool.windows()) {
        s.window_pieces =
            cut(s.pages.window_pieces(pool, windows->first_seen(s.computed), s.computed + size), {}, &random);
        batch.back().window_table = s.window_pieces;
      }
    }
    const auto logits = t.forward(batch);
    std::size_t row = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      traveller& s = *who[i];
      for (std::uint32_t j = batch[i].logits_begin; j < s.fed.size(); ++j, ++row) {
        if (j >= s.right) continue;
        ASSERT_EQ(std::memcmp(logits.data() + row * vocabulary, s.expected.data() + (s.computed + j) * vocabulary,
                              vocabulary * sizeof(float)),
                  0)
            << "token " << s.computed + j;
      }
      s.computed += s.right;
      s.pages.truncate(pool, s.computed);
      s.pages.hold_windows(pool, s.computed);
    }
    ASSERT_EQ(logits.size(), row * vocabulary);
  }
}

/// Leaves holes: half of the pages are taken in random order and given back, so that neighbors are rarely free.
void fragment(kv::page_pool& pool, std::mt19937& random, std::vector<page_id>& kept) {
  std::vector<page_id> taken;
  while (const auto page = pool.allocate()) taken.push_back(*page);
  std::shuffle(taken.begin(), taken.end(), random);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (i % 3 == 0) {
      kept.push_back(taken[i]);
    } else {
      pool.release(taken[i]);
    }
  }
}

void check_invariance(const kernels::kernel_table& table, const tiny_shape& shape, kv_type type, unsigned seed,
                      std::uint32_t threads) {
  std::mt19937 random(seed);
  kernels::worker_team team(threads);
  const auto w = load(shape, table, team);
  std::vector<traveller> all(4);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].tokens = random_tokens(random, 20 + random() % 70);
    if (i == 1) all[i].shifts = {{7, 5}, {30, -3}, {41, 5}};
    all[i].expected = alone(w, table, type, all[i].tokens, all[i].shifts);
  }
  kv::page_pool pool(40);
  std::vector<page_id> kept;
  fragment(pool, random, kept);
  const auto t = make(w, table, team, type, 40);
  travel(*t, all, pool, random);
}

tiny_shape shape_for(std::string architecture, gguf::tensor_type matrices) {
  const bool deepseek = architecture == "deepseek2";
  const bool is_mixture = architecture == "mixtral" || architecture == "gpt-oss" || architecture == "mellum" ||
                          architecture.ends_with("moe") || architecture == "qwen3next" || deepseek;
  const bool gemma4 = architecture == "gemma4";
  if (architecture == "mixtral") architecture = "llama";
  tiny_shape shape{.architecture = architecture, .matrices = matrices, .seed = 3};
  using enum gguf::tensor_type;
  const auto of_256 = {q4_k, q5_k, q6_k, q2_k, q3_k, iq4_xs, iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, iq1_s, iq1_m};
  if (std::find(of_256.begin(), of_256.end(), matrices) != of_256.end()) {  // rows of whole blocks of 256
    shape.width = shape.feed_forward = 256;
    shape.head_dim = shape.rotary_dim = 64;
  } else if (architecture ==
             "qwen2") {  // a group of three, a head that is not a multiple of a vector, an odd FFN width
    shape.heads = 6;
    shape.head_dim = 32;
    shape.rotary_dim = 32;
    shape.tied_head = false;
  } else {
    shape.rotary_dim = 12;
  }
  if (gemma4) {
    shape.layers = 5;
    shape.sharing_layers = 2;
    shape.layer_input = 32;
    shape.keys_are_values = matrices == gguf::tensor_type::f32;
  }
  if (is_mixture || gemma4) {
    shape.experts = 7;
    shape.experts_used = 3;
    shape.expert_feed_forward = shape.width == 256 ? 256 : 32;
    const bool shares = architecture == "qwen2moe" || architecture == "qwen35moe" || architecture == "qwen3next";
    shape.shared_feed_forward = shares ? shape.feed_forward : 0;
    if (deepseek) {
      shape.shared_feed_forward = 2 * shape.expert_feed_forward;
      shape.query_rank = shape.width;
      shape.one_latent_matrix = matrices == gguf::tensor_type::f32;
      shape.dense_layers = 1;
      shape.by_sigmoid = matrices == gguf::tensor_type::q8_0 || matrices == gguf::tensor_type::f16;
    }
  }
  return shape;
}

/// Four sequences share few window pages, which move between them as windows pass. What other sequences left in a page
/// is never visible.
TEST(transformer_windows, give_the_same_bits_from_storage_of_their_own) {
  for (const char* architecture : {"gemma2", "gemma3", "gemma4", "gpt-oss"}) {
    for (const kv_type type : {kv_type::f32, kv_type::f16, kv_type::q8_0, kv_type::i16}) {
      SCOPED_TRACE(std::string(architecture) + " " + std::string(kernels::name_of(type)));
      const kernels::kernel_table& table = *kernels::process_table().table;
      std::mt19937 random(7);
      kernels::worker_team team(2);
      const auto w = load(shape_for(architecture, gguf::tensor_type::f32), table, team);
      const std::uint32_t window = window_of(shape_of(*w));
      ASSERT_GT(window, 0U);
      std::vector<traveller> all(4);
      for (traveller& each : all) {
        each.tokens = random_tokens(random, 170 + random() % 80);
        each.expected = alone(w, table, type, each.tokens);
      }
      constexpr std::uint32_t window_pages = 18;  // the sequences have 25 pages and more
      kv::page_pool pool(kv::pool_size(60, window_pages, window));
      const auto t = make(w, table, team, type, 60, window_pages);
      ASSERT_EQ(t->size().window, window);
      travel(*t, all, pool, random);
      std::uint32_t held = 0;
      for (const traveller& each : all) held += each.pages.held_count();
      EXPECT_GT(held, window_pages) << "more than fit at a time";
    }
  }
}

class every_target : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string target = GetParam();
    constexpr std::string_view suffix = "_int8";
    if (target.ends_with(suffix)) {
      choice_ = test::choose_int8_table_or_emulate(target.substr(0, target.size() - suffix.size()));
    } else {
      choice_ = test::choose_table_or_emulate(target);
    }
    if (choice_.table == nullptr) GTEST_SKIP() << choice_.problem;
  }
  [[nodiscard]] const kernels::kernel_table& table() const { return *choice_.table; }

 private:
  kernels::table_choice choice_;
};

TEST_P(every_target, gives_a_row_the_same_bits_alone_and_in_any_mixture) {
  std::vector<std::string> architectures{"mixtral"};
  for (const architecture::family& f : architecture::families()) {
    if (!f.has_states()) architectures.emplace_back(f.name);  // for the others see recurrent_layers_test.cpp
  }
  unsigned seed = 100;
  std::size_t combination = 0;
  using enum gguf::tensor_type;
  for (const auto matrices : {f32,  f16,    bf16,   q8_0,  q4_0,    q4_1,   q5_0,  q5_1,    q4_k,  q5_k,  q6_k, q2_k,
                              q3_k, iq4_nl, iq4_xs, mxfp4, iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, iq1_s, iq1_m}) {
    for (const kv_type type : kernels::all_element_types) {
      ++seed;
      // Every format is tried with one type of cache, and the plain one with all.
      if (matrices != f32 && static_cast<unsigned>(matrices) % 4 != static_cast<unsigned>(type)) continue;
      const std::string& architecture = architectures[combination++ % architectures.size()];
      SCOPED_TRACE(architecture + ", " + gguf::name_of(matrices) + ", cache " + std::to_string(static_cast<int>(type)));
      ASSERT_NO_FATAL_FAILURE(
          check_invariance(table(), shape_for(architecture, matrices), type, seed, seed % 3 == 2 ? 4 : 1 + seed % 3));
    }
  }
  EXPECT_GE(combination, std::size(architectures)) << "each is tried";
}

// Covers both forms of the file and every type of cache, because keys and values are longer than those of other
// families. In the first form a head's values end within a panel, and those of the next head follow.
TEST_P(every_target, gives_a_row_of_latent_attention_the_same_bits_alone_and_in_any_mixture) {
  using enum gguf::tensor_type;
  for (const kv_type type : kernels::all_element_types) {
    const auto seed = 300 + static_cast<unsigned>(type);
    SCOPED_TRACE(name_of(type));
    tiny_shape shape = shape_for("deepseek2", seed % 2 == 0 ? f32 : q8_0);
    if (shape.matrices == f32) shape.width = shape.query_rank = 96;
    ASSERT_NO_FATAL_FAILURE(check_invariance(table(), shape, type, seed, 1 + seed % 3));
  }
}

// With more threads than heads and rows, a long context is cut into KV splits.
TEST_P(every_target, gives_a_row_after_a_long_context_the_same_bits_with_any_number_of_threads) {
  constexpr std::uint32_t count = kernels::kv_split_tokens + 90;
  constexpr std::uint32_t pages = count / kv::page_tokens + 1;
  std::mt19937 random(4);
  const auto tokens = random_tokens(random, count);
  std::vector<float> expected;
  struct world {
    std::uint32_t threads;
    kv_type type;
    const char* architecture = "llama";
    std::uint32_t window = 0;
  };
  for (const auto& [threads, type, architecture, window] : {world{1, kv_type::f16},
                                                            {4, kv_type::f16},
                                                            {8, kv_type::f16},
                                                            {1, kv_type::q8_0},
                                                            {4, kv_type::q8_0},
                                                            {8, kv_type::q8_0},
                                                            {1, kv_type::i16},
                                                            {8, kv_type::i16},
                                                            // Windows within a KV split and across its end.
                                                            {1, kv_type::f16, "gemma2", 85},
                                                            {8, kv_type::f16, "gemma2", 85},
                                                            {1, kv_type::f16, "deepseek2"},
                                                            {8, kv_type::f16, "deepseek2"},
                                                            {1, kv_type::q8_0, "gpt-oss", 200},
                                                            {8, kv_type::q8_0, "gpt-oss", 200}}) {
    if (threads == 1) expected.clear();
    kernels::worker_team team(threads);
    const tiny_shape shape{.architecture = architecture,
                           .heads = 4,
                           .kv_heads = 2,
                           .context = 4096,
                           .experts = architecture == "gpt-oss"sv || architecture == "deepseek2"sv ? 5U : 0U,
                           .window = window};
    const auto t = make(load(shape, table(), team), table(), team, type, pages);
    std::vector<float> found;
    for (std::uint32_t done = 0; done < count;) {
      const std::uint32_t rows =
          done + 10 < count ? std::min(200u, count - 10 - done) : done % 2 + 1;  // at the end one or two
      const std::uint32_t taken = std::min(rows, count - done);
      const kv::piece piece{0, done + taken, 0};
      const run r{.tokens = std::span(tokens).subspan(done, taken),
                  .first_position = static_cast<position>(done),
                  .table = {&piece, 1}};
      const auto logits = t->forward({&r, 1});
      done += taken;
      if (done > count - 10) found.insert(found.end(), logits.begin(), logits.end());
    }
    if (expected.empty()) expected = found;
    ASSERT_EQ(found.size(), 10 * vocabulary);
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0) << threads << " threads";
  }
}

// The four kinds of runs that one pass can contain.
TEST_P(every_target, computes_a_copied_run_a_decode_step_a_verification_and_a_prompt_in_one_batch) {
  struct user {
    const char* what;
    std::uint32_t before;
    std::uint32_t rows;
    std::uint32_t logits_begin;
    std::vector<token> tokens{};
    std::vector<float> expected{};
    kv::page_table pages{};
    std::vector<kv::piece> pieces{};
  };
  user users[] = {
      {"copied run", 25, 45, 44}, {"decode step", 33, 1, 0}, {"verification", 12, 7, 0}, {"prompt", 0, 50, 50}};
  std::mt19937 random(21);
  kernels::worker_team team(2);
  const auto w = load(shape_for("qwen2", gguf::tensor_type::q8_0), table(), team);
  const auto t = make(w, table(), team, kv_type::f16);
  kv::page_pool pool(16);
  std::vector<run> batch;
  for (user& u : users) {
    u.tokens = random_tokens(random, u.before + u.rows);
    u.expected = alone(w, table(), kv_type::f16, u.tokens);
    ASSERT_TRUE(u.pages.append(pool, u.before));
    const auto context = std::span(u.tokens).first(u.before);
    const run r{context, 0, u.pages.pieces(), u.before};
    if (u.before > 0) t->forward({&r, 1});
    ASSERT_TRUE(u.pages.append(pool, u.rows));
    u.pieces = {u.pages.pieces().begin(), u.pages.pieces().end()};
    batch.push_back({std::span(u.tokens).subspan(u.before), static_cast<position>(u.before), u.pieces, u.logits_begin});
  }
  const auto logits = t->forward(batch);
  std::size_t row = 0;
  for (const user& u : users) {
    for (std::uint32_t i = u.logits_begin; i < u.rows; ++i, ++row) {
      EXPECT_EQ(std::memcmp(logits.data() + row * vocabulary, u.expected.data() + (u.before + i) * vocabulary,
                            vocabulary * sizeof(float)),
                0)
          << u.what << ", row " << i;
    }
  }
  EXPECT_EQ(logits.size(), row * vocabulary);
  EXPECT_EQ(row, 1u + 1 + 7);
  // The prompt had no logits, so its KV is checked through the logits of the next token.
  user& prompt = users[3];
  const token next = 17;
  auto longer = prompt.tokens;
  longer.push_back(next);
  ASSERT_TRUE(prompt.pages.append(pool, 1));
  const run last{{&next, 1}, static_cast<position>(prompt.rows), prompt.pages.pieces(), 0};
  const auto logits_after = t->forward({&last, 1});
  const auto expected = alone(w, table(), kv_type::f16, longer);
  EXPECT_EQ(std::memcmp(logits_after.data(), expected.data() + prompt.rows * vocabulary, vocabulary * sizeof(float)),
            0);
}

TEST_P(every_target, has_no_usable_logits_after_a_token_that_is_no_number) {
  kernels::worker_team team(1);
  auto tiny = test::make_tiny_model(shape_for("llama", gguf::tensor_type::f32));
  auto& embedding = tiny.tensor("token_embd.weight");
  const std::size_t width = embedding.dimensions[0];
  const std::vector<float> nan(width, std::numeric_limits<float>::quiet_NaN());
  std::memcpy(embedding.payload.data() + 3 * width * sizeof(float), nan.data(), width * sizeof(float));
  const auto w = *load_weights(*tiny.file(), table(), team);
  for (const auto type : {kv_type::f16, kv_type::bf16, kv_type::q8_0, kv_type::i16}) {
    const std::vector<token> tokens{1, 2, 5, 3, 4, 6};
    const auto logits = alone(w, table(), type, tokens);
    for (std::size_t i = 3; i < tokens.size(); ++i) {
      EXPECT_FALSE(sampling::is_usable(std::span(logits).subspan(i * vocabulary, vocabulary))) << i;
    }
    const auto before = alone(w, table(), type, std::span(tokens).first(3));
    EXPECT_TRUE(sampling::is_usable(std::span(before).last(vocabulary)));
  }
}

class twin_target : public every_target {};

TEST_P(twin_target, gives_the_bits_of_the_other_target) {
  kernels::worker_team team(1);
  const bool by_integers = kernels::multiplies_integers(table());
  const auto& twin = *kernels::choose_table(table().one_chain || by_integers ? "scalar" : "amx_emulated").table;
  const auto& other = by_integers ? *kernels::int8_table_of(twin) : twin;
  std::mt19937 random(5);
  const auto tokens = random_tokens(random, 40);
  using enum gguf::tensor_type;
  for (const auto matrices : {f32, q8_0, q4_1, q5_0, q4_k, q6_k}) {
    for (const architecture::family& f : architecture::families()) {
      const std::string architecture(f.name);
      if (architecture != "llama" && matrices != f32 && matrices != q8_0) continue;
      const tiny_shape shape = shape_for(architecture, matrices);
      const auto own = load(shape, table(), team), others = load(shape, other, team);
      for (const kv_type type : {kv_type::f16, kv_type::q8_0, kv_type::i16}) {
        const auto expected = alone(others, other, type, tokens);
        ASSERT_EQ(expected.size(), tokens.size() * vocabulary);
        EXPECT_EQ(expected, alone(own, table(), type, tokens)) << architecture << ", " << name_of(type);
      }
    }
  }
}

/// A mixture of experts in which each matrix has another type, as in files that spend their bits where errors matter
/// most.
test::tiny_model with_all_types(unsigned first) {
  tiny_shape shape = shape_for("qwen2moe", gguf::tensor_type::q4_k);
  shape.layers = 3;
  test::tiny_model m = test::make_tiny_model(shape);
  unsigned next = first;
  for (test::tiny_tensor& t : m.tensors) {
    if (t.type != gguf::tensor_type::q4_k) continue;
    std::vector<float> values(t.payload.size() / kernels::row_bytes(kernels::weight_type::q4_k, 256) * 256);
    kernels::dequantize_row(kernels::weight_type::q4_k, t.payload.data(), values.size(), values.data());
    const auto type = kernels::all_weight_types[next++ % std::size(kernels::all_weight_types)];
    for (unsigned i = 0; i < 64 && gguf::name_of(t.type) != kernels::name_of(type); ++i) t.type = gguf::tensor_type{i};
    t.payload = test::tiny_encode(t.type, values);
  }
  return m;
}

TEST_P(twin_target, gives_the_bits_of_the_other_target_where_every_tensor_has_another_type) {
  kernels::worker_team team(1);
  const bool by_integers = kernels::multiplies_integers(table());
  const auto& twin = *kernels::choose_table(table().one_chain || by_integers ? "scalar" : "amx_emulated").table;
  const auto& other = by_integers ? *kernels::int8_table_of(twin) : twin;
  std::mt19937 random(6);
  const auto tokens = random_tokens(random, 40);
  for (const unsigned first : {0U, 5U, 11U, 17U}) {
    const auto file = with_all_types(first).file();
    std::set<gguf::tensor_type> types;
    for (const gguf::tensor& t : file->tensors()) types.insert(t.type);
    ASSERT_EQ(types.size(), std::size(kernels::all_weight_types));
    const auto own = load_weights(*file, table(), team), others = load_weights(*file, other, team);
    ASSERT_TRUE(own && others) << own.error().describe();
    EXPECT_EQ(alone(*others, other, kv_type::f16, tokens), alone(*own, table(), kv_type::f16, tokens));
  }
}

/// The targets of this build, or, with a suffix, their tables for integer products.
std::vector<std::string> targets(std::initializer_list<const char*> wanted, const std::string& suffix = "") {
  std::vector<std::string> names;
  for (const char* target : test::targets_of_build(wanted)) names.push_back(target + suffix);
  return names;
}
std::string name_of_target(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(targets, every_target,
                         ::testing::ValuesIn(targets({"scalar", "neon", "avx2", "avx512", "avx512vnni", "blas", "amx",
                                                      "amx_emulated"})),
                         name_of_target);
INSTANTIATE_TEST_SUITE_P(int8, every_target,
                         ::testing::ValuesIn(targets({"scalar", "neon", "avx2", "avx512vnni", "amx_emulated"},
                                                     "_int8")),
                         name_of_target);
INSTANTIATE_TEST_SUITE_P(targets, twin_target,
                         ::testing::ValuesIn(targets({"neon", "avx2", "avx512", "avx512vnni", "amx"})), name_of_target);
INSTANTIATE_TEST_SUITE_P(int8, twin_target,
                         ::testing::ValuesIn(targets({"neon", "avx2", "avx512", "avx512vnni", "amx_emulated"},
                                                     "_int8")),
                         name_of_target);

class transformer_test : public ::testing::Test {
 protected:
  const kernels::kernel_table& table_ = kernels::table_for_cache(*kernels::process_table().table, kv_type::f32);
  kernels::worker_team team_{2};
};

float largest_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

// Rows with the same experts share the reading of their weights, which makes copied text cheap.
TEST_F(transformer_test, counts_the_experts_that_a_pass_reads) {
  const tiny_shape shape = shape_for("qwen3moe", gguf::tensor_type::f32);
  const auto t = make(load(shape, table_, team_), table_, team_, kv_type::f32, 4);
  kv::page_pool pool(4);
  kv::page_table pages;
  ASSERT_TRUE(pages.append(pool, 12));
  const std::vector<token> tokens(12, 17);
  const auto forward = [&](std::uint32_t first, std::uint32_t count) {
    const auto pieces = pages.prefix(first + count);
    const run r{std::span(tokens).subspan(first, count), static_cast<position>(first), pieces, 0};
    t->forward({&r, 1});
  };
  forward(0, 1);
  EXPECT_EQ(t->experts().layers, shape.layers);
  EXPECT_EQ(t->experts().rows, shape.layers);
  EXPECT_EQ(t->experts().experts, shape.layers * shape.experts_used);
  forward(1, 11);
  EXPECT_EQ(t->experts().rows, 12U * shape.layers);
  EXPECT_LE(t->experts().experts, shape.layers * (shape.experts_used + shape.experts));
}

TEST_F(transformer_test, sees_shifted_pieces_at_their_offset_positions) {
  std::mt19937 random(9);
  const auto tokens = random_tokens(random, 60);
  for (const std::string architecture : {"llama", "qwen2"}) {
    const auto w = load(shape_for(architecture, gguf::tensor_type::f32), table_, team_);
    const auto plain = alone(w, table_, kv_type::f32, tokens);
    const std::vector<shift> shifts{{10, 7}, {25, -300}, {26, 1}, {47, 7}, {60, -1}};
    const auto shifted = alone(w, table_, kv_type::f32, tokens, shifts);
    EXPECT_LT(largest_difference(plain, shifted), 5e-4F) << architecture;
    EXPECT_GT(largest_difference(plain, shifted), 0.0F) << "the offsets change the result";
  }
}

TEST_F(transformer_test, continues_after_a_prefix_that_was_moved_by_an_offset) {
  std::mt19937 random(10);
  const auto tokens = random_tokens(random, 60);
  const auto w = load(shape_for("qwen2", gguf::tensor_type::f32), table_, team_);
  const auto t = make(w, table_, team_, kv_type::f32);
  kv::page_pool pool(16);
  kv::page_table pages;
  ASSERT_TRUE(pages.append(pool, 40));
  const std::span<const token> all(tokens);
  const run first{all.first(40), 0, pages.pieces(), 40};
  EXPECT_TRUE(t->forward({&first, 1}).empty());
  // The 40 keys now count as positions 25 to 64, and the rest follows at 65.
  ASSERT_TRUE(pages.append(pool, 20));
  const std::vector<shift> moved{{40, 25}};
  const auto pieces = cut(pages.pieces(), moved, nullptr);
  const run second{all.subspan(40), 65, pieces, 0};
  const auto found = t->forward({&second, 1});
  const auto expected = alone(w, table_, kv_type::f32, tokens, {}, 25);
  EXPECT_LT(largest_difference(found, std::span(expected).subspan(40 * vocabulary)), 5e-4F);
}

TEST_F(transformer_test, lets_a_row_see_earlier_tokens_only) {
  std::mt19937 random(12);
  auto tokens = random_tokens(random, 30);
  const auto w = load({}, table_, team_);
  const auto before = alone(w, table_, kv_type::f32, tokens);
  tokens[3] = (tokens[3] + 1) % 256;
  const auto changed = alone(w, table_, kv_type::f32, tokens);
  EXPECT_GT(largest_difference(std::span(before).last(vocabulary), std::span(changed).last(vocabulary)), 1e-2F);
  EXPECT_EQ(std::memcmp(before.data(), changed.data(), 3 * vocabulary * sizeof(float)), 0);
}

TEST_F(transformer_test, gives_a_row_of_logits_for_each_row_that_wants_one) {
  const auto t = make(load({}, table_, team_), table_, team_, kv_type::f16);
  kv::page_pool pool(16);
  kv::page_table pages;
  ASSERT_TRUE(pages.append(pool, 5));
  const std::vector<token> tokens{1, 2, 3, 4, 5};
  const run r{tokens, 0, pages.pieces(), 3};
  EXPECT_EQ(t->forward({&r, 1}).size(), 2 * vocabulary);
  EXPECT_TRUE(t->forward({}).empty());
  EXPECT_EQ(t->rows_max(), 256U);
}

TEST_F(transformer_test, refuses_storage_that_cannot_be_addressed) {
  const auto w = load({}, table_, team_);
  const auto t = transformer::create(w, table_, team_, {.pages_count = 1U << 31});
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().code, errc::invalid_argument);
  EXPECT_FALSE(transformer::create(w, table_, team_, {.pages_count = 1, .rows_max = 0}));
}

TEST_F(transformer_test, takes_no_memory_for_pages_that_are_not_used) {
  const auto w = load({}, table_, team_);
  const std::uint32_t pages = 1U << 20;
  const auto t = transformer::create(w, table_, team_, {.pages_count = pages, .kv = kv_type::f16});
  ASSERT_TRUE(t) << t.error().describe();
  EXPECT_GT(page_bytes(shape_of(*w), kv_type::f16) * (pages), std::uint64_t{1} << 32);
}

}  // namespace
}  // namespace redline::model
