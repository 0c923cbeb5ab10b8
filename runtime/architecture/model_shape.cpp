#include "runtime/architecture/model_shape.hpp"

#include <algorithm>
#include <charconv>

namespace redline::architecture {
namespace {

/// Describes what is wrong with the sizes of latent attention and its mixture; empty if nothing is.
std::string wrong_latents(const model_shape& s) {
  const auto between = [](const char* what, std::uint32_t most, std::uint32_t found) {
    return "expected " + std::string(what) + " from 1 to " + std::to_string(most) + ", found " + std::to_string(found);
  };
  const latent_shape& l = *s.latent;
  if (s.rotary_dim == 0 || s.rotary_dim >= head_dim_max) {
    return between("rotated dimensions", head_dim_max - 1, s.rotary_dim);
  }
  const std::uint32_t rank_max = cached_dim_max - s.rotary_dim;
  if (l.rank == 0 || l.rank > rank_max) return between("a latent rank", rank_max, l.rank);
  if (l.plain_dim == 0) return between("dimensions of a key that are not rotated", head_dim_max - s.rotary_dim, 0);
  if (l.value_dim == 0 || l.value_dim > head_dim_max) return between("a value size", head_dim_max, l.value_dim);
  if (s.head_dim != l.rank + s.rotary_dim) {
    return "expected a head size of " + std::to_string(l.rank + s.rotary_dim) +
           ", the latent rank and the rotated dimensions, found " + std::to_string(s.head_dim);
  }
  if (l.query_rank > width_max) return between("a query rank", width_max, l.query_rank);
  if (s.kv_heads != 1) return between("heads for keys and values", 1, s.kv_heads);
  if (std::uint64_t{s.heads} * (l.rank + s.rotary_dim) > width_max) {
    return "expected fewer than " + std::to_string(width_max) + " numbers in the queries of a row";
  }
  if (s.expert_feed_forward == 0 || s.shared_feed_forward % s.expert_feed_forward != 0) {
    return "expected shared experts as wide as the others, found " + std::to_string(s.shared_feed_forward) +
           " in total, with " + std::to_string(s.expert_feed_forward) + " for each of the others";
  }
  return {};
}

/// Describes what is wrong with the sizes of recurrent layers; empty if nothing is.
std::string wrong_recurrence(const model_shape& s) {
  // Only the first limit concerns convolutions.
  const delta_shape d = s.delta.value_or(delta_shape{s.convolution_taps, 1, 1, 32});
  struct limit {
    const char* what;
    std::uint32_t found, most, unit;
  };
  for (const limit& l : {limit{"a convolution", d.taps, taps_max, 1},
                         {"key heads", d.key_heads, width_max / head_dim_max, 1},
                         {"value heads", d.value_heads, width_max / head_dim_max, d.key_heads},
                         {"a size of recurrent heads", d.head_dim, head_dim_max, 32}}) {
    if (l.found != 0 && l.found <= l.most && l.found % l.unit == 0) continue;
    return "expected " + std::string(l.what) + " up to " + std::to_string(l.most) +
           (l.unit == 1 ? "" : " and a multiple of " + std::to_string(l.unit)) + ", found " + std::to_string(l.found);
  }
  if (s.convolution_taps == 1) return "expected a convolution of at least 2 rows, found 1";
  if (s.attention_layers() == 0) return "expected a layer with attention among " + std::to_string(s.layers);
  return {};
}

result<void> check_experts(const model_shape& s) {
  const auto refuse = [&](const std::string& what) { return failure{errc::invalid_argument, "shape: " + what}; };
  if (s.experts > experts_max || (s.kind->needs_experts && s.experts == 0)) {
    return refuse("expected 1 to " + std::to_string(experts_max) + " experts, found " + std::to_string(s.experts));
  }
  if (s.experts != 0 && (s.experts_used == 0 || s.experts_used > s.experts)) {
    return refuse("expected rows to use 1 to " + std::to_string(s.experts) + " experts, found " +
                  std::to_string(s.experts_used));
  }
  if (s.expert_groups == 0 || (s.experts != 0 && s.experts % s.expert_groups != 0) || s.expert_groups_used == 0 ||
      s.expert_groups_used > s.expert_groups) {
    return refuse("expected equal groups of experts and no more used groups than there are, found " +
                  std::to_string(s.expert_groups_used) + " of " + std::to_string(s.expert_groups) + " groups of " +
                  std::to_string(s.experts) + " experts");
  }
  const bool lacks_width = s.experts != 0 && s.expert_feed_forward == 0;
  if (lacks_width || std::max(s.expert_feed_forward, s.shared_feed_forward) > width_max) {
    return refuse("expected experts of a width from 1 to " + std::to_string(width_max) + ", found " +
                  std::to_string(lacks_width ? 0 : std::max(s.expert_feed_forward, s.shared_feed_forward)));
  }
  return {};
}

}  // namespace

std::uint64_t delta_shape::packed_row(std::uint64_t row) const {
  const std::uint64_t of_values = std::uint64_t{values_per_key()} * head_dim, together = 2 * (head_dim + of_values);
  const auto at = [&](std::uint64_t before, std::uint64_t in_part, std::uint64_t of_head) {
    return in_part / of_head * together + before + in_part % of_head;
  };
  if (row < keys()) return at(0, row, head_dim);
  if (row < 2 * keys()) return at(head_dim, row - keys(), head_dim);
  if (row < channels()) return at(2 * head_dim, row - 2 * keys(), of_values);
  return at(2 * head_dim + of_values, row - channels(), of_values);
}

bool model_shape::is_extra(std::string_view tensor) const {
  constexpr std::string_view before = "blk.";
  if (extra_layers == 0 || !tensor.starts_with(before)) return false;
  // Some files repeat the model's embedding and head for the MTP layer.
  const bool is_repeated = tensor.find(".nextn.embed_tokens.") != std::string_view::npos ||
                           tensor.find(".nextn.shared_head_head.") != std::string_view::npos;
  if (has_mtp() && !is_repeated) return false;
  std::uint32_t layer = 0;
  const char* const end = tensor.data() + tensor.size();
  const auto [rest, problem] = std::from_chars(tensor.data() + before.size(), end, layer);
  return problem == std::errc() && rest != end && *rest == '.' && layer >= layers && layer - layers < extra_layers;
}

std::string describe_wrong_variety(const model_shape& s) {
  const varied_shape& v = *s.varied;
  struct limit {
    const char* what;
    std::uint32_t found, least, most, unit;
  };
  for (const limit& l : {limit{"an even head size in layers with a window", v.window_head_dim, 2, head_dim_max, 2},
                         {"an even number of rotated dimensions there", v.window_rotary_dim, 2, v.window_head_dim, 2},
                         {"heads for keys and values there", v.window_kv_heads, 1, s.heads, 1},
                         {"heads for keys and values", s.kv_heads, 1, s.heads, 1},
                         {"a size of a token's input to each layer", v.layer_input, 0, width_max / s.layers, 1},
                         {"a hidden width of the last layers", v.sharing_feed_forward, 1, width_max, 1}}) {
    if (l.found >= l.least && l.found <= l.most && l.found % l.unit == 0) continue;
    return "expected " + std::string(l.what) + " from " + std::to_string(l.least) + " to " + std::to_string(l.most) +
           ", found " + std::to_string(l.found);
  }
  for (const std::uint32_t kv_heads : {s.kv_heads, v.window_kv_heads}) {
    if (s.heads % kv_heads == 0) continue;
    return "expected a divisor of the " + std::to_string(s.heads) + " heads as heads for keys and values, found " +
           std::to_string(kv_heads);
  }
  if (s.layer_kinds.size() != s.layers) return "expected to know which layers have a window";
  for (const layer_kind kind : {layer_kind::full, layer_kind::window}) {
    const auto first = std::ranges::find(s.layer_kinds, kind) - s.layer_kinds.begin();
    if (first == s.layers || first + std::int64_t{v.sharing_layers} < s.layers) continue;
    return "expected a layer of each kind before the last " + std::to_string(v.sharing_layers) +
           ", which read its keys and values, found the first in layer " + std::to_string(first);
  }
  return {};
}

std::size_t model_shape::kv_layer_of(std::size_t layer) const {
  std::size_t from = layer;
  while (!keeps_tokens(from) || kind_of(from) != kind_of(layer)) --from;  // read_shape found such a layer
  return from;
}

model_shape model_shape::of_layer(std::size_t layer) const {
  model_shape one = *this;
  if (!varied) return one;
  if (kind_of(layer) == layer_kind::window) {
    one.head_dim = varied->window_head_dim;
    one.kv_heads = varied->window_kv_heads;
    one.rotary_dim = varied->window_rotary_dim;
  }
  if (!keeps_tokens(layer)) one.feed_forward = varied->sharing_feed_forward;
  return one;
}

result<void> check(const model_shape& s) {
  const auto refuse = [&](const std::string& what) { return failure{errc::invalid_argument, "shape: " + what}; };
  for (const std::uint32_t n : {s.layers, s.width, s.heads, s.kv_heads, s.head_dim, s.feed_forward, s.vocabulary}) {
    if (n == 0 || n > vocabulary_max) {
      return refuse("expected sizes from 1 to " + std::to_string(vocabulary_max) + ", found " + std::to_string(n));
    }
  }
  if (s.context == 0 || s.context > trained_context_max) {
    return refuse("expected a context from 1 to " + std::to_string(trained_context_max) + ", found " +
                  std::to_string(s.context));
  }
  if (s.heads % s.kv_heads != 0) {
    return refuse("expected a multiple of the " + std::to_string(s.kv_heads) + " heads for keys and values, found " +
                  std::to_string(s.heads) + " heads");
  }
  if (s.latent) {
    const std::string wrong = wrong_latents(s);
    if (!wrong.empty()) return refuse(wrong);
  }
  if (!s.layer_kinds.empty() && s.layer_kinds.size() != s.layers) {
    return refuse("expected kinds of " + std::to_string(s.layers) + " layers, found " +
                  std::to_string(s.layer_kinds.size()));
  }
  if (s.varied && s.layers <= layers_max) {
    const std::string wrong = describe_wrong_variety(s);
    if (!wrong.empty()) return refuse(wrong);
  }
  if (s.has_states() && s.layers <= layers_max) {
    const std::string wrong = wrong_recurrence(s);
    if (!wrong.empty()) return refuse(wrong);
  }
  const std::uint32_t own = s.own_head_dim();
  if (own % 2 != 0 || own > head_dim_max) {
    return refuse("expected an even head size up to " + std::to_string(head_dim_max) + ", found " +
                  std::to_string(own));
  }
  if (s.rotated() % 2 != 0 || s.rotated() > own) {
    return refuse("expected an even number of rotated dimensions up to " + std::to_string(own) + ", found " +
                  std::to_string(s.rotated()));
  }
  for (const std::uint64_t n : {std::uint64_t{s.width}, std::uint64_t{s.feed_forward}, std::uint64_t{s.heads} * own}) {
    if (n > width_max) {
      return refuse("expected rows of at most " + std::to_string(width_max) + ", found " + std::to_string(n));
    }
  }
  REDLINE_TRY(check_experts(s));
  if (s.layers > layers_max) {
    return refuse("expected at most " + std::to_string(layers_max) + " layers, found " + std::to_string(s.layers));
  }
  return {};
}

bool uses_long_factors(const model_shape& shape, std::uint32_t context_max) {
  if (shape.short_context == 0) return false;
  return (context_max == 0 ? shape.context : std::min(context_max, shape.context)) > shape.short_context;
}

std::string describe_rotation(const model_shape& shape, std::uint32_t context_max) {
  if (shape.short_context == 0) return {};
  return uses_long_factors(shape, context_max) ? ", rotated for long sequences" : ", rotated for short sequences";
}

}  // namespace redline::architecture
