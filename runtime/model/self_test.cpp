#include "runtime/model/self_test.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>

#include "kernels/grid_blocks.hpp"
#include "kernels/int8_tables.hpp"
#include "kernels/packed_weights.hpp"
#include "kernels/prepared_rows.hpp"
#include "kernels/weight_blocks.hpp"
#include "runtime/base/philox.hpp"
#include "runtime/kv/page_pool.hpp"

namespace redline::model {
namespace {

using kernels::kernel_table;
using kernels::weight_type;
using kernels::worker_team;

/// Batch sizes that together exercise every way in which the kernels block rows.
constexpr std::array<std::uint32_t, 7> batch_sizes = {1, 2, 3, 5, 8, 17, 64};
constexpr std::uint32_t rows_most = 64;
/// Few, because the reference is slow, and every single row is computed the same way.
constexpr std::size_t rows_defined = 8;
/// Panels that are computed eight, two and one at a time, with the last one incomplete.
constexpr std::size_t outputs = 165;
/// Several blocks, and several column segments as the kernels divide eight panels.
constexpr std::size_t columns_of(weight_type type) {
  return std::max<std::size_t>(192, 2 * kernels::block_columns(type));
}

/// Random numbers that depend only on the seed and the stream.
class noise {
 public:
  noise(std::uint64_t seed, std::uint32_t stream)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}, stream_(stream) {}

  std::uint32_t word() { return philox4x32({index_++, stream_, 0, 0}, key_)[0]; }
  /// Uniform in [-1, 1).
  std::vector<float> floats(std::size_t count) {
    std::vector<float> numbers(count);
    for (float& n : numbers) n = static_cast<float>(static_cast<std::int32_t>(word())) * 0x1p-31F;
    return numbers;
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t stream_;
  std::uint32_t index_ = 0;
};

std::string exactly(float f) {
  char text[32];
  std::snprintf(text, sizeof(text), "%a", static_cast<double>(f));
  return text;
}

/// Describes the first value of `found` that neither has the same bits nor is within the tolerance. Both are [rows,
/// width].
std::optional<std::string> difference(std::span<const float> wanted, std::span<const float> found, std::size_t width,
                                      float tolerance = 0) {
  REDLINE_ASSERT(wanted.size() == found.size(), "results of one shape");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::memcmp(&wanted[i], &found[i], sizeof(float)) == 0 || std::fabs(wanted[i] - found[i]) < tolerance) continue;
    return "row " + std::to_string(i / width) + ", output " + std::to_string(i % width) + ": expected " +
           exactly(wanted[i]) + ", found " + exactly(found[i]);
  }
  return std::nullopt;
}

std::string with_threads(const worker_team& team) {
  return team.size() == 1 ? "with one thread" : "with " + std::to_string(team.size()) + " threads";
}

/// A matrix in one format, rows to multiply it with, and the products by definition.
struct product_case {
  weight_type type;
  std::size_t columns = 0;
  std::vector<std::byte> matrix;  // [outputs, columns] as stored in a file
  std::vector<float> bias;        // [outputs]
  std::vector<float> x;           // [rows_most, columns]
  std::vector<float> expected;    // [rows_defined, outputs]
};

/// Computes one chain of fused multiply-adds per output, then adds the bias.
void define_output(product_case& c, std::size_t output) {
  std::vector<float> weights(c.columns);
  const std::byte* row = c.matrix.data() + output * kernels::row_bytes(c.type, c.columns);
  kernels::dequantize_row(c.type, row, c.columns, weights.data());
  for (std::size_t r = 0; r < rows_defined; ++r) {
    float sum = 0;
    for (std::size_t k = 0; k < c.columns; ++k) sum = std::fma(c.x[r * c.columns + k], weights[k], sum);
    c.expected[r * outputs + output] = sum + c.bias[output];
  }
}

/// Fills in random blocks of a type that can only be read: any bytes are valid, except for the scale.
void fill_blocks(weight_type type, noise& random, std::vector<std::byte>& matrix) {
  constexpr float scale = 0x1p-9F;  // weights are below 1
  for (std::byte& b : matrix) b = static_cast<std::byte>(random.word() & 255);
  for (std::size_t at = 0; at < matrix.size(); at += kernels::block_bytes(type)) {
    kernels::put_grid_scale(type, scale, matrix.data() + at);
  }
}

product_case make_case(weight_type type, std::uint64_t seed, worker_team& team) {
  noise random(seed, static_cast<std::uint32_t>(type));
  product_case c{.type = type, .columns = columns_of(type)};
  const std::vector<float> floats = random.floats(outputs * c.columns);
  c.bias = random.floats(outputs);
  c.x = random.floats(rows_most * c.columns);
  const std::size_t bytes = kernels::row_bytes(type, c.columns);
  c.matrix.resize(outputs * bytes);
  c.expected.resize(rows_defined * outputs);
  const bool written = kernels::is_written(type);
  if (!written) fill_blocks(type, random, c.matrix);
  team.parallel_for(outputs, [&](std::size_t i, std::uint32_t) {
    if (written) kernels::quantize_row(type, floats.data() + i * c.columns, c.columns, c.matrix.data() + i * bytes);
    define_output(c, i);
  });
  return c;
}

/// Computes rows [first, first + count): in one call for a team of one, else split as finely as the table allows.
std::vector<float> multiply(const kernel_table& table, worker_team& team, const kernels::packed_weights& w,
                            const product_case& c, std::size_t first, std::size_t count) {
  std::vector<float> y(count * outputs, std::numeric_limits<float>::quiet_NaN());
  const std::size_t panels = kernels::panels_for(outputs);
  const std::size_t step = team.size() == 1 ? panels : table.panels_step;
  const float* x = c.x.data() + first * c.columns;
  const kernels::prepared_rows prepared(table, x, c.columns, count, c.columns);
  team.parallel_for((panels + step - 1) / step, [&](std::size_t item, std::uint32_t) {
    table.gemm({.w = w.view(),
                .panel_begin = item * step,
                .panel_end = std::min(panels, (item + 1) * step),
                .x = x,
                .x_stride = c.columns,
                .rows = count,
                .y = y.data(),
                .y_stride = outputs,
                .bias = c.bias.data(),
                .prepared = prepared.data()});
  });
  return y;
}

/// A sum of k products loses at most k roundings of its largest partial sum. Weights and rows are about 1 at most, and
/// the sums stay far below k. The errors of single products are random: sqrt(k) times one of them, with a margin.
float rounding_bound(const kernel_table& table, std::size_t columns) {
  if (table.one_chain) return 0;
  const auto k = static_cast<float>(columns);
  return 4 * k * std::numeric_limits<float>::epsilon() + std::sqrt(k) * table.product_error;
}

/// expected: the outputs of the first rows; the table may differ by `tolerance`.
std::string try_products(const kernel_table& table, worker_team& one, worker_team& many, const product_case& c,
                         std::span<const float> expected, float tolerance) {
  const kernels::packed_weights w(table, many, c.type, outputs, c.columns, c.matrix.data());
  std::vector<float> alone;
  for (std::size_t row = 0; row < rows_most; ++row) {
    const auto y = multiply(table, one, w, c, row, 1);
    alone.insert(alone.end(), y.begin(), y.end());
  }
  const auto defined = std::span(alone).first(expected.size());
  if (const auto d = difference(expected, defined, outputs, tolerance)) {
    return "a single row differs from the definition at " + *d;
  }
  for (const std::uint32_t count : batch_sizes) {
    const std::size_t first = std::size_t{count} * 7 % (rows_most - count + 1);
    const auto wanted = std::span(alone).subspan(first * outputs, count * outputs);
    for (worker_team* team : {&one, &many}) {
      if (const auto d = difference(wanted, multiply(table, *team, w, c, first, count), outputs)) {
        return "a row in a batch of " + std::to_string(count) + ' ' + with_threads(*team) +
               " differs from the same row alone at " + *d;
      }
    }
  }
  return {};
}

/// A model, a prompt, and KV storage.
struct prompt_case {
  std::shared_ptr<const weights> w;
  std::string_view target;
  const kernel_table& table;
  kv_type kv;
  std::span<const token> tokens;
};

/// The prompt has one chunk of each size.
constexpr std::array<std::uint32_t, 7> chunk_sizes = {1, 2, 3, 5, 8, 17, 33};
constexpr std::uint32_t prompt_tokens = std::accumulate(chunk_sizes.begin(), chunk_sizes.end(), 0U);
/// Pages for the prompt in scattered pieces, followed by pages for a second sequence in order.
constexpr std::uint32_t scattered_pages = 16;
constexpr std::uint32_t all_pages = scattered_pages + prompt_tokens / kv::page_tokens + 1;

constexpr kv::piece contiguous[] = {{0, prompt_tokens, 0}};
constexpr kv::piece neighbours_place[] = {{scattered_pages * kv::page_tokens, prompt_tokens, 0}};

/// Pieces of uneven lengths that begin inside pages, from the last page to the first.
std::vector<kv::piece> scattered() {
  std::vector<kv::piece> pieces;
  std::uint32_t left = prompt_tokens;
  for (std::uint32_t i = 0; left > 0; ++i) {
    const std::uint32_t length = std::min(left, 1 + i * 11 % 29);
    REDLINE_ASSERT(i < scattered_pages, "each piece has a page");
    pieces.push_back({(scattered_pages - 1 - i) * kv::page_tokens + i % 4, length, 0});
    left -= length;
  }
  return pieces;
}

/// The pieces of the first `count` tokens.
std::vector<kv::piece> first_of(std::span<const kv::piece> pieces, std::uint32_t count) {
  std::vector<kv::piece> some;
  for (kv::piece p : pieces) {
    p.count = std::min(p.count, count);
    count -= p.count;
    if (p.count > 0) some.push_back(p);
  }
  return some;
}

result<std::unique_ptr<transformer>> make_transformer(const prompt_case& c, worker_team& team) {
  static_assert(2 * chunk_sizes.back() <= prompt_tokens, "the largest chunk fits twice");
  return transformer::create(c.w, c.table, team,
                             {.pages_count = all_pages, .state_slots = 2, .kv = c.kv, .rows_max = prompt_tokens});
}

/// Logits of every token, from one run.
result<std::vector<float>> at_once(const prompt_case& c, worker_team& team, std::span<const kv::piece> pieces) {
  REDLINE_TRY_ASSIGN(const auto t, make_transformer(c, team));
  const run whole{.tokens = c.tokens, .table = pieces, .state = {.kept = static_cast<std::uint32_t>(c.tokens.size())}};
  const auto logits = t->forward({&whole, 1});
  return std::vector<float>(logits.begin(), logits.end());
}

/// Logits from chunks of all sizes, each batched with a chunk of a second sequence that wants no logits.
result<std::vector<float>> in_chunks(const prompt_case& c, worker_team& team, std::span<const kv::piece> pieces) {
  REDLINE_TRY_ASSIGN(const auto t, make_transformer(c, team));
  std::vector<float> all;
  std::uint32_t done = 0;
  for (const std::uint32_t size : chunk_sizes) {
    const auto own = first_of(pieces, done + size);
    const auto neighbours = first_of(neighbours_place, done + size);
    const auto chunk = c.tokens.subspan(done, size);
    const run batch[] = {{.tokens = chunk,
                          .first_position = static_cast<position>(done),
                          .table = neighbours,
                          .logits_begin = size,
                          .state = {.slot = 1, .begins = done == 0, .kept = size}},
                         {.tokens = chunk,
                          .first_position = static_cast<position>(done),
                          .table = own,
                          .state = {.begins = done == 0, .kept = size}}};
    const auto logits = t->forward(batch);
    all.insert(all.end(), logits.begin(), logits.end());
    done += size;
  }
  return all;
}

class tester {
 public:
  tester(const self_test_options& options, const std::function<void(const self_check&)>& on_check)
      : o_(options), on_check_(on_check), many_(options.threads) {}

  result<std::vector<self_check>> run() {
    for (const weight_type type : kernels::all_weight_types) {
      const product_case c = make_case(type, o_.seed, many_);
      for (const kernel_table* table : o_.tables) {
        note(table->name, "products with " + std::string(name_of(type)) + " weights",
             try_products(*table, one_, many_, c, c.expected, rounding_bound(*table, c.columns)));
      }
      if (kernels::block_columns(type) > 1) try_integer_products(c);
    }
    REDLINE_TRY(choose_prompt());
    reference_ = {.table = &o_.reference, .numerics = ""};
    REDLINE_TRY(compute_reference());
    for (const kernel_table* table : o_.tables) REDLINE_TRY(try_models(table->name, *table));
    reference_ = {.table = kernels::int8_table_of(o_.reference), .numerics = " and products of integers"};
    if (reference_.table == nullptr) return std::move(found_);
    REDLINE_TRY(compute_reference());
    for (const kernel_table* table : o_.tables) {
      if (const kernel_table* int8 = kernels::int8_table_of(*table)) REDLINE_TRY(try_models(table->name, *int8));
    }
    return std::move(found_);
  }

 private:
  void note(std::string_view target, std::string claim, std::string problem) {
    found_.push_back({std::string(target), std::move(claim), std::move(problem)});
    if (on_check_) on_check_(found_.back());
  }

  /// Checks that every target gives the reference's results.
  void try_integer_products(const product_case& c) {
    const kernel_table* reference = kernels::int8_table_of(o_.reference);
    if (reference == nullptr) return;
    const kernels::packed_weights w(*reference, many_, c.type, outputs, c.columns, c.matrix.data());
    const auto expected = multiply(*reference, one_, w, c, 0, rows_defined);
    const std::string claim = "products of integers with " + std::string(name_of(c.type)) + " weights";
    // They must be near the definition in floats, too.
    const float tolerance = rounding_bound(*reference, c.columns);
    if (const auto d = difference(c.expected, expected, outputs, tolerance)) note(reference->name, claim, *d);
    for (const kernel_table* table : o_.tables) {
      const kernel_table* int8 = kernels::int8_table_of(*table);
      if (int8 != nullptr) note(table->name, claim, try_products(*int8, one_, many_, c, expected, 0));
    }
  }

  result<void> choose_prompt() {
    REDLINE_TRY_ASSIGN(const model_shape config, architecture::read_shape(o_.model));
    noise random(o_.seed, std::numeric_limits<std::uint32_t>::max());
    prompt_.resize(prompt_tokens);
    for (token& t : prompt_) t = static_cast<token>(random.word() % config.vocabulary);
    return {};
  }

  result<void> compute_reference() {
    REDLINE_TRY_ASSIGN(const auto w, load_weights(o_.model, *reference_.table, many_));
    for (const kv_type kv : kernels::all_element_types) {
      REDLINE_TRY_ASSIGN(reference_.logits[static_cast<std::size_t>(kv)],
                         at_once({w, o_.reference.name, *reference_.table, kv, prompt_}, many_, contiguous));
    }
    return {};
  }

  result<void> try_models(std::string_view target, const kernel_table& table) {
    REDLINE_TRY_ASSIGN(const auto w, load_weights(o_.model, table, many_));
    for (const kv_type kv : kernels::all_element_types) REDLINE_TRY(try_model({w, target, table, kv, prompt_}));
    return {};
  }

  result<void> try_model(const prompt_case& c) {
    const std::string with = " with " + std::string(name_of(c.kv)) + " keys and values" + reference_.numerics;
    REDLINE_TRY_ASSIGN(const auto plain, at_once(c, one_, contiguous));
    const std::size_t vocabulary = plain.size() / prompt_tokens;
    const auto compare = [&](const std::string& claim, std::span<const float> wanted, std::span<const float> found) {
      const auto d = difference(wanted, found, vocabulary);
      note(c.target, claim + with, d ? "logits differ at " + *d : "");
    };
    REDLINE_TRY_ASSIGN(const auto in_pieces, at_once(c, one_, scattered()));
    compare("attention over scattered pages", plain, in_pieces);
    REDLINE_TRY_ASSIGN(const auto chunks, in_chunks(c, many_, scattered()));
    compare("a prompt in chunks, in batches with another, " + with_threads(many_), plain, chunks);
    const bool has_its_bits = c.table.one_chain || kernels::multiplies_integers(c.table);
    if (!has_its_bits || &c.table == reference_.table) return {};
    compare("a model as the " + std::string(o_.reference.name) + " target computes it",
            reference_.logits[static_cast<std::size_t>(c.kv)], plain);
    return {};
  }

  const self_test_options& o_;
  const std::function<void(const self_check&)>& on_check_;
  worker_team one_{1};
  worker_team many_;
  std::vector<token> prompt_;
  struct {
    const kernel_table* table = nullptr;
    std::string numerics;                                                      // as named in claims
    std::array<std::vector<float>, kernels::all_element_types.size()> logits;  // by type of keys and values
  } reference_;
  std::vector<self_check> found_;
};

}  // namespace

result<std::vector<self_check>> self_test(const self_test_options& options,
                                          const std::function<void(const self_check&)>& on_check) {
  return tester(options, on_check).run();
}

}  // namespace redline::model
