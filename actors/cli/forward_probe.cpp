#include "actors/cli/forward_probe.hpp"

#include <algorithm>

#include "runtime/model/feed_forward.hpp"

namespace redline::actors::cli {
namespace {

using model::transformer;

transformer::times per_pass(const transformer::times& a, const transformer::times& b, double passes) {
  using t = transformer::times;
  const auto mean = [&](double t::*part) { return (b.*part - a.*part) / passes; };
  return {.prepare = mean(&t::prepare),
          .query_key_value = mean(&t::query_key_value),
          .store = mean(&t::store),
          .attention = mean(&t::attention),
          .recurrence = mean(&t::recurrence),
          .output = mean(&t::output),
          .feed_forward = mean(&t::feed_forward),
          .norms = mean(&t::norms),
          .head = mean(&t::head)};
}

/// The number of attention weights of a layer that a row is multiplied with. m: the sizes of that layer.
double attention_weights(const architecture::model_shape& m, std::uint32_t layer) {
  const double width = m.width, heads = m.heads, keys = m.keeps_tokens(layer) ? m.kv_heads : 0;
  if (!m.latent) return width * m.head_dim * (2 * heads + 2 * keys);
  const architecture::latent_shape& l = *m.latent;
  const double own = heads * (l.plain_dim + m.rotated());
  const double queries = l.query_rank == 0 ? width * own : l.query_rank * (width + own);
  return queries + width * m.head_dim + heads * l.rank * (l.plain_dim + l.value_dim) + width * m.attended_width();
}

/// The same for a recurrent layer, whose state takes as many steps as three matrices of its size.
double recurrent_weights(const architecture::model_shape& m) {
  if (!m.delta) return 4.0 * m.width * m.width;
  const auto& d = *m.delta;
  return 1.0 * m.width * (d.channels() + 2.0 * d.values() + 2 * d.value_heads) + 3.0 * d.values() * d.head_dim;
}

/// The same for a layer's feed-forward part.
double feed_forward_weights(const architecture::model_shape& m, std::uint32_t layer) {
  const double of_input = m.varied ? 2.0 * m.width * m.varied->layer_input : 0;
  const double dense = of_input + 3.0 * m.width * m.feed_forward;
  if (!m.is_mixture(layer)) return dense;
  const double hidden = 1.0 * m.experts_used * m.expert_feed_forward + m.shared_feed_forward;
  return m.width * (3 * hidden + m.experts) + (m.kind->adds_mixture() ? dense : 0);
}

}  // namespace

forward_probe::weight_bytes forward_probe::bytes_of(const gguf::gguf_file& file,
                                                    const architecture::model_shape& config) {
  weight_bytes out;
  for (const auto& t : file.tensors()) {
    const bool is_looked_up =
        t.name == "token_embd.weight" ? !config.tied_head : t.name == "per_layer_token_embd.weight";
    if (is_looked_up) continue;
    (t.name.find("_exps.") == std::string::npos ? out.always : out.experts) += t.bytes.size();
  }
  return out;
}

result<std::unique_ptr<forward_probe>> forward_probe::create(const gguf::gguf_file& file,
                                                             std::shared_ptr<const model::weights> weights,
                                                             const kernels::kernel_table& table,
                                                             kernels::worker_team& team, const options& how) {
  const weight_bytes bytes = bytes_of(file, model::shape_of(*weights));
  const std::uint32_t pages = (how.tokens_max + kv::page_tokens - 1) / kv::page_tokens;
  const transformer::options storage{
      .pages_count = pages, .state_slots = 1, .kv = how.kv, .rows_max = how.rows_max, .profile = how.profile};
  REDLINE_TRY_ASSIGN(auto made, transformer::create(std::move(weights), table, team, storage));
  return std::unique_ptr<forward_probe>(new forward_probe(std::move(made), bytes, pages, how));
}

forward_probe::forward_probe(std::unique_ptr<transformer> m, const weight_bytes& weights, std::uint32_t pages,
                             const options& how)
    : model_(std::move(m)), pool_(pages), how_(how), weights_(weights) {}

void forward_probe::grow_context(std::uint32_t tokens) {
  while (table_.token_count() < tokens) pass(std::min(model_->rows_max(), tokens - table_.token_count()), false);
}

forward_cell forward_probe::measure(std::uint32_t rows, const effort& how_long) {
  const std::uint32_t context = table_.token_count();
  forward_cell c{.rows = rows, .context = context};
  std::vector<double> seconds;
  const auto once = [&] {
    const double start = seconds_on(how_.clock);
    pass(rows, true);
    seconds.push_back(seconds_on(how_.clock) - start);
    table_.truncate(pool_, context);
  };
  once();  // warms caches and buffers
  const double begin = seconds_on(how_.clock);
  const transformer::times before = model_->time_spent();
  const std::uint64_t experts_before = model_->experts().experts;
  seconds.clear();
  while (seconds.size() < how_long.samples ||
         (seconds_on(how_.clock) - begin < how_long.seconds && seconds.size() < 200))
    once();
  const auto passes = static_cast<double>(seconds.size());
  c.spent = per_pass(before, model_->time_spent(), passes);
  c.experts = static_cast<double>(model_->experts().experts - experts_before) / passes;
  std::sort(seconds.begin(), seconds.end());
  c.best_ms = seconds.front() * 1e3;
  c.median_ms = seconds[seconds.size() / 2] * 1e3;
  c.samples = static_cast<std::uint32_t>(seconds.size());
  count_work(c);
  return c;
}

void forward_probe::pass(std::uint32_t rows, bool logits) {
  const std::uint32_t first = table_.token_count();
  tokens_.resize(rows);
  const std::uint64_t distinct = how_.distinct_tokens == 0 ? ~std::uint64_t{0} : how_.distinct_tokens;
  for (std::uint32_t i = 0; i < rows; ++i) {
    tokens_[i] = static_cast<token>((std::uint64_t{first + i} % distinct * 7919 + 13) % model_->config().vocabulary);
  }
  REDLINE_ASSERT(table_.append(pool_, rows), "the pool was sized for the longest sequence");
  const model::run r{.tokens = tokens_,
                     .first_position = static_cast<position>(first),
                     .table = table_.pieces(),
                     .logits_begin = !logits          ? rows
                                     : how_.last_only ? rows - 1
                                                      : 0,
                     .state = {.begins = first == 0, .kept = rows}};
  model_->forward({&r, 1});
}

void forward_probe::count_work(forward_cell& c) const {
  const architecture::model_shape& m = model_->config();
  const double rows = c.rows;
  double layers = 0, flops_of_seen = 0;
  double read = 0, keys = 0;  // numbers of keys: read once, and of one token
  for (std::uint32_t i = 0; i < m.layers; ++i) {
    const architecture::model_shape of = m.of_layer(i);
    layers += (m.is_recurrent(i) ? recurrent_weights(m) : attention_weights(of, i)) + feed_forward_weights(of, i);
    if (m.is_recurrent(i)) continue;
    const double window = m.window_of(i) == 0 ? c.context + rows : m.window_of(i);
    double seen = 0;
    for (std::uint32_t row = 0; row < c.rows; ++row) seen += std::min(window, c.context + row + 1.0);
    flops_of_seen += seen * m.heads * (2.0 * of.head_dim + kernels::multiply_adds_per_exponential);
    read += 1.0 * of.kv_heads * of.head_dim * std::min(window + rows - 1, c.context + rows);
    if (m.keeps_tokens(i)) keys += 1.0 * of.kv_heads * of.head_dim;
  }
  const double logits_rows = how_.last_only ? 1 : rows;
  const auto kv_bytes_per_token = static_cast<double>(model::page_bytes(m, how_.kv) / kv::page_tokens);
  c.product_flops = 2 * (layers * rows + logits_rows * m.width * m.vocabulary);
  c.attention_flops = 2 * flops_of_seen;
  const double experts = m.mixture_layers() == 0 ? 0 : c.experts / (1.0 * m.mixture_layers() * m.experts);
  c.bytes = static_cast<double>(weights_.always) + experts * static_cast<double>(weights_.experts) +
            kv_bytes_per_token * read / std::max(keys, 1.0) +
            static_cast<double>(2 * model::state_bytes(m, 0));  // read and written once
}

}  // namespace redline::actors::cli
