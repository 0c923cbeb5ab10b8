#include "bench/studies/cache/evict_study.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/machine/memory.hpp"
#include "runtime/base/assert.hpp"
#include "runtime/kv/page_table.hpp"

namespace redline::studies {
namespace {

constexpr std::size_t dimensions = 64;
constexpr std::size_t keys_count = kernels::kv_page_tokens;

double angle_of(double turn, std::size_t pair) {
  return turn * std::pow(10000.0, -2.0 * static_cast<double>(pair) / dimensions);
}

std::vector<float> angles_of(double turn) {
  std::vector<float> angles(dimensions);
  for (std::size_t i = 0; i < dimensions / 2; ++i) {
    angles[i] = static_cast<float>(std::cos(angle_of(turn, i)));
    angles[dimensions / 2 + i] = static_cast<float>(std::sin(angle_of(turn, i)));
  }
  return angles;
}

/// One page of keys of one head.
class key_page {
 public:
  explicit key_page(kernels::element_type type)
      : type_(type),
        value_offset_(kernels::round_up(kernels::kv_key_bytes(type, dimensions), 64)),
        bytes_(kernels::kv_head_bytes(type, dimensions)) {}

  [[nodiscard]] kernels::kv_view view() { return {bytes_.data(), bytes_.data() + value_offset_, bytes_.size(), type_}; }
  [[nodiscard]] std::vector<float> key(std::size_t slot) {
    std::vector<float> out(dimensions);
    kernels::read_key(view(), slot, dimensions, out.data());
    return out;
  }

 private:
  kernels::element_type type_;
  std::size_t value_offset_;
  std::vector<std::byte> bytes_;
};

/// Sums of squares of an error and of the value that it is an error of.
struct relative_error {
  double error = 0;
  double whole = 0;
  void add(std::span<const float> found, std::span<const double> wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      error += (found[i] - wanted[i]) * (found[i] - wanted[i]);
      whole += wanted[i] * wanted[i];
    }
  }
  [[nodiscard]] double rms() const { return std::sqrt(error / whole); }
};

std::vector<double> turned(std::span<const float> key, double turn) {
  std::vector<double> out(dimensions);
  for (std::size_t i = 0; i < dimensions / 2; ++i) {
    const double c = std::cos(angle_of(turn, i));
    const double s = std::sin(angle_of(turn, i));
    const double a = key[i];
    const double b = key[i + dimensions / 2];
    out[i] = a * c - b * s;
    out[i + dimensions / 2] = a * s + b * c;
  }
  return out;
}

}  // namespace

std::vector<key_drift> measure_drift(const kernels::kernel_table& table, kernels::element_type type,
                                     std::span<const std::uint32_t> shifts) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  key_page page(type);
  for (std::size_t slot = 0; slot < keys_count; ++slot) {
    std::vector<float> key(dimensions);
    for (float& x : key) x = normal(random);
    table.store_kv(page.view(), slot, dimensions, key.data(), key.data());
  }
  key_page before = page;
  const auto back_by_one = angles_of(-1);
  std::vector<key_drift> drifts;
  std::uint32_t done = 0;
  for (const std::uint32_t wanted : shifts) {
    for (; done < wanted; ++done) {
      table.rotate_keys(page.view(), 0, keys_count, kernels::rope_pairs::half_split, back_by_one.data(), dimensions,
                        dimensions);
    }
    const auto back_by_all = angles_of(-static_cast<double>(wanted));
    relative_error eager;
    relative_error lazy;
    for (std::size_t slot = 0; slot < keys_count; ++slot) {
      const auto old = before.key(slot);
      const auto exact = turned(old, -static_cast<double>(wanted));
      std::vector<float> at_once(dimensions);
      table.rotate(kernels::rope_pairs::half_split, old.data(), back_by_all.data(), dimensions, dimensions,
                   at_once.data());
      eager.add(page.key(slot), exact);
      lazy.add(at_once, exact);
    }
    drifts.push_back({wanted, eager.rms(), lazy.rms()});
  }
  return drifts;
}

double stream_quality::perplexity() const { return tokens == 0 ? 0 : std::exp(nats / static_cast<double>(tokens)); }

namespace {

/// A model that reads a text through a window.
class window_reader {
 public:
  window_reader(model::transformer& model, const window_shape& shape)
      : model_(model), shape_(shape), pool_(shape.n_ctx / kv::page_tokens * 3 / 2 + 8) {}

  stream_quality read(std::span<const token> text) {
    stream_quality q;
    while (!text.empty()) {
      if (log_.size() == shape_.n_ctx) {
        evict();
        ++q.evictions;
      }
      const std::size_t room = std::min<std::size_t>(shape_.n_ctx - log_.size(), model_.rows_max());
      const auto chunk = text.first(std::min(room, text.size()));
      const bool counts = q.evictions > 0;
      const std::uint64_t rows = rows_;
      (void)compute();  // computes the keys that an eviction dropped
      log_.insert(log_.end(), chunk.begin(), chunk.end());
      const auto logits = compute();
      for (std::size_t i = 0; counts && i < chunk.size() && i + 1 < text.size(); ++i) judge(logits, i, text[i + 1], q);
      if (counts) q.rows += rows_ - rows;
      text = text.subspan(chunk.size());
    }
    return q;
  }

 private:
  /// Computes the tokens of the log that have no keys yet and returns the logits of the last pass's rows.
  std::span<const float> compute() {
    std::span<const float> logits;
    while (table_.token_count() < log_.size()) {
      const std::uint32_t first = table_.token_count();
      const auto count = std::min<std::uint32_t>(static_cast<std::uint32_t>(log_.size()) - first, model_.rows_max());
      if (table_.is_fragmented()) model_.move_tokens(table_.compact(pool_));
      REDLINE_ASSERT(table_.append(pool_, count), "the pool has half as many pages again as the window needs");
      const auto pieces = table_.prefix(first + count);
      const model::run one{.tokens = std::span(log_).subspan(first, count),
                           .first_position = static_cast<position>(first),
                           .table = pieces};
      logits = model_.forward({&one, 1});
      rows_ += count;
    }
    return logits;
  }

  void evict() {
    const auto first = log_.begin() + shape_.n_keep;
    log_.erase(first, first + shape_.n_discard);
    const auto policy = kv::to_splice_policy(shape_.policy);
    if (!kv::keeps_later(policy)) {
      table_.truncate(pool_, shape_.n_keep);
      return;
    }
    table_.splice(pool_, shape_.n_keep, shape_.n_discard, -static_cast<std::int32_t>(shape_.n_discard));
    if (policy == kv::splice_policy::eager) model_.move_tokens(table_.apply_offsets(pool_, shape_.n_keep));
  }

  void judge(std::span<const float> logits, std::size_t row, token next, stream_quality& q) const {
    const std::size_t words = model_.config().vocabulary;
    const auto own = logits.subspan(row * words, words);
    const auto best = std::max_element(own.begin(), own.end());
    double sum = 0;
    for (const float x : own) sum += std::exp(static_cast<double>(x) - *best);
    q.nats += std::log(sum) + *best - own[static_cast<std::size_t>(next)];
    q.right += best - own.begin() == next ? 1 : 0;
    ++q.tokens;
  }

  model::transformer& model_;
  window_shape shape_;
  kv::page_pool pool_;
  kv::page_table table_;
  std::vector<token> log_;
  std::uint64_t rows_ = 0;  // rows computed so far
};

}  // namespace

stream_quality read_through_window(model::transformer& model, std::span<const token> text, const window_shape& shape) {
  return window_reader(model, shape).read(text);
}

}  // namespace redline::studies
