#include "runtime/architecture/tensors.hpp"

#include <algorithm>
#include <set>

namespace redline::architecture {
namespace {

bool is_present(presence when, const model_shape& s, std::uint32_t layer) {
  switch (when) {
    case presence::always:
      return true;
    case presence::untied:
      return !s.tied_head;
    case presence::norm_shifts:
      return s.kind->has_norm_shifts();
    case presence::dense:
      return !s.is_mixture(layer);
    case presence::mixture:
      return s.is_mixture(layer);
    case presence::shared_expert:
      return s.is_mixture(layer) && s.shared_feed_forward != 0;
    case presence::low_rank_queries:
      return s.latent && s.latent->query_rank != 0;
    case presence::direct_queries:
      return !s.latent || s.latent->query_rank == 0;
    case presence::qkv_biases:
      return s.qkv_biases;
    case presence::own_head_norms:
      return s.own_head_norms;
    case presence::selection_bias:
      return s.is_mixture(layer) && s.selection_bias;
    case presence::attention:
      return !s.is_recurrent(layer);
    case presence::recurrent:
      return s.is_recurrent(layer);
    case presence::own_keys:
      return s.keeps_tokens(layer);
    case presence::own_values:
      return s.keeps_tokens(layer) &&
             (!s.varied || !s.varied->keys_are_values || s.kind_of(layer) == layer_kind::window);
    case presence::layer_input:
      return s.varied && s.varied->layer_input != 0;
  }
  return false;
}

tensor tensor_of(const tensor_row& row, const model_shape& s, const std::string& ours, const std::string& theirs) {
  const bool is_counted = row.count != dim::none;
  return {.is = row.is,
          .gguf = ours + std::string(row.gguf),
          .hub = theirs + std::string(row.hub),
          .rows = size_of(row.rows, s),
          .columns = size_of(row.columns, s),
          .count = is_counted ? size_of(row.count, s) : 1,
          .is_counted = is_counted,
          .form = row.form,
          .part = row.part,
          .parts = row.parts};
}

/// Formats "a, b and 3 more".
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() <= shown ? text : text + " and " + std::to_string(names.size() - shown) + " more";
}

}  // namespace

std::vector<std::uint64_t> tensor::dimensions() const {
  std::vector<std::uint64_t> d;
  if (columns != 0) d.push_back(columns);
  d.push_back(rows);
  if (is_counted) d.push_back(count);
  return d;
}

std::uint64_t size_of(dim d, const model_shape& s) {
  const std::uint64_t queries = std::uint64_t{s.heads} * s.own_head_dim();
  const std::uint64_t keys = std::uint64_t{s.kv_heads} * s.head_dim;
  const latent_shape latent = s.latent.value_or(latent_shape());
  const delta_shape delta = s.delta.value_or(delta_shape());
  switch (d) {
    case dim::none:
      return 0;
    case dim::width:
      return s.width;
    case dim::vocabulary:
      return s.vocabulary;
    case dim::heads:
      return s.heads;
    case dim::kv_heads:
      return s.kv_heads;
    case dim::head_dim:
      return s.head_dim;
    case dim::queries:
      return queries;
    case dim::keys:
      return keys;
    case dim::query_key_value:
      return queries + 2 * keys;
    case dim::queries_and_gates:
      return 2 * queries;
    case dim::attended:
      return s.attended_width();
    case dim::feed_forward:
      return s.feed_forward;
    case dim::gate_and_up:
      return 2ULL * s.feed_forward;
    case dim::experts:
      return s.experts;
    case dim::expert_feed_forward:
      return s.expert_feed_forward;
    case dim::shared_feed_forward:
      return s.shared_feed_forward;
    case dim::query_rank:
      return latent.query_rank;
    case dim::latent_rank:
      return latent.rank;
    case dim::latent_and_rotated:
      return std::uint64_t{latent.rank} + s.rotated();
    case dim::plain_dim:
      return latent.plain_dim;
    case dim::value_dim:
      return latent.value_dim;
    case dim::delta_channels:
      return delta.channels();
    case dim::delta_values:
      return delta.values();
    case dim::delta_value_heads:
      return delta.value_heads;
    case dim::delta_value_heads_twice:
      return 2ULL * delta.value_heads;
    case dim::delta_head_dim:
      return delta.head_dim;
    case dim::taps:
      return s.delta ? delta.taps : s.convolution_taps;
    case dim::width_twice:
      return 2ULL * s.width;
    case dim::width_three_times:
      return 3ULL * s.width;
    case dim::layer_input:
      return s.varied ? s.varied->layer_input : 0;
    case dim::layer_inputs:
      return s.varied ? std::uint64_t{s.varied->layer_input} * s.layers : 0;
    case dim::one:
      return 1;
  }
  return 0;
}

std::vector<tensor> layer_tensors(const model_shape& shape, std::uint32_t layer) {
  const std::string ours = "blk." + std::to_string(layer) + ".";
  const bool is_mtp = layer >= shape.layers;
  const std::string theirs =
      (is_mtp ? "mtp.layers." : "model.layers.") + std::to_string(is_mtp ? layer - shape.layers : layer) + ".";
  const model_shape sizes = shape.of_layer(layer);
  std::vector<tensor> all;
  for (const auto& block : shape.kind->layer) {
    for (const tensor_row& row : block) {
      if (is_present(row.when, shape, layer)) all.push_back(tensor_of(row, sizes, ours, theirs));
    }
  }
  if (!is_mtp) return all;
  for (const tensor_row& row : shape.kind->mtp) all.push_back(tensor_of(row, sizes, ours, "mtp."));
  return all;
}

std::vector<tensor> outer_tensors(const model_shape& shape) {
  std::vector<tensor> all;
  for (const tensor_row& row : shape.kind->outer.empty() ? outer_rows() : shape.kind->outer) {
    if (is_present(row.when, shape, 0)) all.push_back(tensor_of(row, shape, "", ""));
  }
  return all;
}

std::string describe_nearest(std::string_view family_name, const std::vector<std::string>& names) {
  std::string text;
  const std::set<std::string, std::less<>> found(names.begin(), names.end());
  for (const family* f : nearest_families(family_name)) {
    std::set<std::string, std::less<>> known;
    std::vector<std::string> more, lacking;
    for (const auto& block : f->layer) {
      for (const tensor_row& row : block) {
        known.emplace(row.gguf);
        if (row.when == presence::always && !found.contains(row.gguf)) lacking.emplace_back(row.gguf);
      }
    }
    for (const std::string& name : found) {
      if (!known.contains(name)) more.push_back(name);
    }
    text += (text.empty() ? "" : "; ") + std::string(f->name) + " ";
    if (more.empty() && lacking.empty()) text += "has the same tensors";
    if (!more.empty()) text += "has no " + some_of(more);
    if (!lacking.empty()) text += (more.empty() ? "needs " : ", and needs ") + some_of(lacking);
  }
  return text;
}

}  // namespace redline::architecture
