#include "runtime/model/weights.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>
#include <optional>
#include <set>

#include "kernels/weight_blocks.hpp"
#include "runtime/architecture/shape_keys.hpp"
#include "runtime/architecture/tensors.hpp"

namespace redline::model {
namespace {

using architecture::dim;
using architecture::role;
using architecture::size_of;
using architecture::tensor;
using kernels::weight_type;

std::optional<weight_type> matrix_type(gguf::tensor_type type) {
  for (const weight_type known : kernels::all_weight_types) {
    if (gguf::name_of(type) == kernels::name_of(known)) return known;
  }
  return std::nullopt;
}

std::string known_types() {
  std::string names;
  for (const weight_type known : kernels::all_weight_types) {
    names += (names.empty() ? "" : ", ") + std::string(kernels::name_of(known));
  }
  return names;
}

std::string shape_text(std::span<const std::uint64_t> dimensions) {
  std::string text = "[";
  for (const std::uint64_t d : dimensions) text += (text.size() > 1 ? ", " : "") + std::to_string(d);
  return text + "]";
}

/// The rows of Q, K and V.
std::vector<std::uint64_t> attention_rows(const model_shape& c) {
  const std::uint64_t keys = size_of(dim::keys, c);
  return {size_of(dim::queries, c), keys, keys};
}

/// What older files of Qwen3-Next have instead of a recurrent layer's input and gate.
constexpr std::string_view packed_input = ".ssm_in.weight";
/// The last norm in files of most families, and in some of LFM2, whose usual name is that of the embedding's norm.
constexpr std::string_view usual_last_norm = "output_norm.weight";
/// What files may have instead of the experts' gates and ups: for each expert both, stacked.
constexpr std::string_view gates_and_ups = ".ffn_gate_up_exps.weight";

/// The row counts of the matrices that are stacked in a two-dimensional tensor.
std::vector<std::uint64_t> rows_of_each(const gguf::tensor& t, const model_shape& c) {
  std::vector<std::uint64_t> fused;
  if (c.kind != nullptr && c.kind->has(role::query_key_value) && t.name.ends_with(".attn_qkv.weight")) {
    fused = attention_rows(c);
  }
  if (c.kind != nullptr && c.kind->has_fused_gate() && t.name.ends_with(".ffn_up.weight")) {
    fused = {c.feed_forward, c.feed_forward};
  }
  if (c.kind != nullptr && c.kind->gates_attention && t.name.ends_with(".attn_q.weight")) {
    fused = {size_of(dim::queries, c), size_of(dim::queries, c)};
  }
  if (c.delta && t.name.ends_with(packed_input)) fused = {c.delta->channels(), c.delta->values()};
  if (c.delta && t.name.ends_with(".ssm_ba.weight")) fused = {c.delta->value_heads, c.delta->value_heads};
  const bool fits = std::accumulate(fused.begin(), fused.end(), std::uint64_t{0}) == t.dimensions[1];
  return fits ? fused : std::vector{t.dimensions[1]};
}

/// Bytes of a matrix's panels, rounded up to a multiple of 64.
std::uint64_t matrix_bytes(weight_type type, std::uint64_t rows, std::uint64_t columns,
                           const kernels::kernel_table& table) {
  return kernels::round_up(kernels::panels_for(rows) * table.panel_bytes(type, columns), 64);
}

/// Older files of latent attention stack, for each head, the matrix that makes keys above the one that makes values.
/// The first is used transposed, which breaks up the blocks of its rows: it is stored as floats.
constexpr std::string_view keys_and_values = ".attn_kv_b.weight";
constexpr weight_type turned_type = weight_type::f32;

/// 0 for tensors that are stored as floats.
std::uint64_t matrix_bytes(const gguf::tensor& t, const model_shape& c, const kernels::kernel_table& table) {
  const std::optional<weight_type> type = matrix_type(t.type);
  const bool has_rows = t.dimensions.size() == 2 || t.dimensions.size() == 3;
  const bool is_matrix = has_rows && !t.name.ends_with(".bias") && !t.name.ends_with("_norm.weight") &&
                         !t.name.ends_with(".ssm_conv1d.weight") && !t.name.ends_with(".shortconv.conv.weight");
  if (!type || !is_matrix || c.is_extra(t.name) || t.dimensions[0] % kernels::block_columns(*type) != 0) return 0;
  if (t.dimensions.size() == 3) {
    const std::uint64_t parts = t.name.ends_with(gates_and_ups) ? 2 : 1;
    return t.dimensions[2] * parts * matrix_bytes(*type, t.dimensions[1] / parts, t.dimensions[0], table);
  }
  if (c.latent && t.name.ends_with(keys_and_values)) {
    return c.heads * (matrix_bytes(turned_type, t.dimensions[0], c.latent->plain_dim, table) +
                      matrix_bytes(*type, c.latent->value_dim, t.dimensions[0], table));
  }
  std::uint64_t bytes = 0;
  for (const std::uint64_t rows : rows_of_each(t, c)) bytes += matrix_bytes(*type, rows, t.dimensions[0], table);
  return bytes;
}

std::uint64_t matrix_bytes(const gguf::gguf_file& file, const model_shape& c, const kernels::kernel_table& table) {
  std::uint64_t bytes = 0;
  for (const gguf::tensor& t : file.tensors()) bytes += matrix_bytes(t, c, table);
  return bytes;
}

/// The tensors of a layer, or those that a model has once, by role.
class tensor_list {
 public:
  explicit tensor_list(std::vector<tensor> all) : all_(std::move(all)) {}
  /// Null if there is none.
  [[nodiscard]] const tensor* find(role is) const {
    const auto it = std::ranges::find(all_, is, &tensor::is);
    return it == all_.end() ? nullptr : &*it;
  }

 private:
  std::vector<tensor> all_;
};

/// Reads tensors from a file one by one, checks them, and remembers which were used.
class loader {
 public:
  /// memory: for the file's matrices, as sized by matrix_bytes.
  loader(const gguf::gguf_file& file, const kernels::kernel_table& table, kernels::worker_team& team,
         const std::function<void(std::uint64_t, std::uint64_t)>& progress, const kernels::memory_block& memory)
      : file_(file), table_(table), team_(team), progress_(progress), free_(memory.data(), memory.size()) {
    for (const gguf::tensor& t : file.tensors()) all_bytes_ += t.bytes.size();
  }

  /// Returns an empty result if there is no tensor, as do the functions below.
  result<kernels::packed_weights> matrix(const tensor* t) {
    if (t == nullptr) return kernels::packed_weights();
    REDLINE_TRY_ASSIGN(std::vector<kernels::packed_weights> only, stacked(*t, {t->rows}));
    return std::move(only.front());
  }
  result<std::vector<float>> vector(const tensor* t) {
    if (t == nullptr) return std::vector<float>();
    return floats(t->gguf, t->dimensions(), t->rows * t->count);
  }

  /// Reads a vector and refuses numbers that are not finite.
  result<std::vector<float>> finite(const tensor* t) {
    REDLINE_TRY_ASSIGN(std::vector<float> values, vector(t));
    const auto odd = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
    if (odd == values.end()) return values;
    return failure{errc::file_malformed,
                   file_.path() + ": tensor '" + t->gguf + "': expected finite numbers, found " + std::to_string(*odd)};
  }

  /// The same for numbers that are not positive.
  result<std::vector<float>> not_positive(const tensor* t) {
    REDLINE_TRY_ASSIGN(std::vector<float> values, finite(t));
    const auto odd = std::ranges::find_if(values, [](float x) { return x > 0; });
    if (odd == values.end()) return values;
    return failure{errc::file_malformed, file_.path() + ": tensor '" + t->gguf +
                                             "': expected no positive numbers, found " + std::to_string(*odd)};
  }

  /// Reads a matrix of floats, transposed: [columns, rows].
  result<std::vector<float>> transposed(const tensor* t) {
    if (t == nullptr) return std::vector<float>();
    REDLINE_TRY_ASSIGN(const std::vector<float> rows, floats(t->gguf, t->dimensions(), t->rows * t->columns));
    std::vector<float> out(rows.size());
    for (std::uint64_t row = 0; row < t->rows; ++row) {
      for (std::uint64_t column = 0; column < t->columns; ++column)
        out[column * t->rows + row] = rows[row * t->columns + column];
    }
    return out;
  }

  /// Reads a matrix as the stacked matrices that it would be with its rows in another order: row i of theirs is its row
  /// row_of(i).
  template<class RowOf>
  result<std::vector<kernels::packed_weights>> reordered(const std::string& name, std::uint64_t columns,
                                                         const std::vector<std::uint64_t>& rows_of_each, RowOf row_of) {
    const std::uint64_t rows = std::accumulate(rows_of_each.begin(), rows_of_each.end(), std::uint64_t{0});
    const std::uint64_t wanted[] = {columns, rows};
    REDLINE_TRY_ASSIGN(const gguf::tensor* t, find(name, wanted));
    REDLINE_TRY_ASSIGN(const weight_type type, block_type(*t, columns));
    const std::uint64_t bytes = kernels::row_bytes(type, columns);
    try {
      std::vector<std::byte> stacked_rows(t->bytes.size());
      for (std::uint64_t row = 0; row < rows; ++row)
        std::copy_n(t->bytes.data() + row_of(row) * bytes, bytes, stacked_rows.data() + row * bytes);
      return pack(*t, stacked_rows.data(), type, columns, rows_of_each);
    } catch (const std::bad_alloc&) {
      return no_memory(*t);
    }
  }

  /// Reads a matrix whose rows belong to two matrices by turns, `together` rows at a time.
  result<std::vector<kernels::packed_weights>> by_turns(const tensor& of, std::uint64_t together) {
    const std::uint64_t half = of.rows / 2;
    return reordered(of.gguf, of.columns, {half, half}, [=](std::uint64_t row) {
      const std::uint64_t in_half = row % half;
      return (in_half / together * 2 + row / half) * together + in_half % together;
    });
  }

  /// Reads a tensor of several stacked matrices.
  result<std::vector<kernels::packed_weights>> stacked(const tensor& t, const std::vector<std::uint64_t>& rows) {
    return matrices(t.gguf, t.dimensions(), rows);
  }
  /// Reads a tensor of [count, rows, columns], matrix by matrix.
  result<std::vector<kernels::packed_weights>> matrices(const tensor& t) {
    return matrices(t.gguf, t.dimensions(), std::vector(t.count, t.rows));
  }

  /// Reads a tensor that has, for each matrix of `like`, two of them.
  result<std::vector<kernels::packed_weights>> pairs(const std::string& name, const tensor& like) {
    const std::uint64_t shape[] = {like.columns, 2 * like.rows, like.count};
    return matrices(name, shape, std::vector(2 * like.count, like.rows));
  }

  /// A tensor of [heads][keys + values, columns]: the keys' matrices transposed, [columns, keys], then the values'.
  struct turned_matrices {
    std::vector<kernels::packed_weights> keys, values;
  };
  result<turned_matrices> turned(const std::string& name, std::uint64_t heads, std::uint64_t keys, std::uint64_t values,
                                 std::uint64_t columns) {
    const std::uint64_t wanted[] = {columns, heads * (keys + values)};
    REDLINE_TRY_ASSIGN(const gguf::tensor* t, find(name, wanted));
    REDLINE_TRY_ASSIGN(const weight_type type, block_type(*t, columns));
    const std::uint64_t row_bytes = kernels::row_bytes(type, columns);
    try {
      turned_matrices both;
      std::vector<float> row(columns), turned_keys(columns * keys);
      const std::byte* source = t->bytes.data();
      for (std::uint64_t head = 0; head < heads; ++head) {
        for (std::uint64_t k = 0; k < keys; ++k, source += row_bytes) {
          kernels::dequantize_row(type, source, columns, row.data());
          for (std::uint64_t c = 0; c < columns; ++c) turned_keys[c * keys + k] = row[c];
        }
        both.keys.emplace_back(table_, team_, turned_type, columns, keys,
                               reinterpret_cast<const std::byte*>(turned_keys.data()),
                               take(matrix_bytes(turned_type, columns, keys, table_)));
        both.values.emplace_back(table_, team_, type, values, columns, source,
                                 take(matrix_bytes(type, values, columns, table_)));
        source += values * row_bytes;
      }
      done(*t);
      return both;
    } catch (const std::bad_alloc&) {
      return no_memory(*t);
    }
  }

  /// Reads a vector as a matrix of one row.
  result<kernels::packed_weights> row(const tensor* t) {
    if (t == nullptr) return kernels::packed_weights();
    REDLINE_TRY_ASSIGN(const std::vector<float> values, vector(t));
    try {
      return kernels::packed_weights(table_, team_, weight_type::f32, 1, values.size(),
                                     reinterpret_cast<const std::byte*>(values.data()));
    } catch (const std::bad_alloc&) {
      return failure{errc::io_error, file_.path() + ": tensor '" + t->gguf + "': no memory to repack it"};
    }
  }

  /// Reads a tensor of [count, length], vector by vector.
  result<std::vector<std::vector<float>>> vectors(const tensor& t) {
    REDLINE_TRY_ASSIGN(const std::vector<float> all, vector(&t));
    std::vector<std::vector<float>> each;
    for (auto at = all.begin(); at != all.end(); at += static_cast<std::ptrdiff_t>(t.rows)) {
      each.emplace_back(at, at + static_cast<std::ptrdiff_t>(t.rows));
    }
    return each;
  }

  result<std::vector<float>> vector(const std::string& name, std::uint64_t length) {
    const std::uint64_t wanted[] = {length};
    return floats(name, wanted, length);
  }

  /// Fails if a tensor was not used, because ignoring it would change the result.
  [[nodiscard]] result<void> check_all_used(const model_shape& c) const {
    for (const gguf::tensor& t : file_.tensors()) {
      if (used_.contains(t.name) || c.is_extra(t.name)) continue;
      return failure{errc::unsupported_format, file_.path() + ": tensor '" + std::string(t.name) +
                                                   "' is not part of this architecture; expected a file without it"};
    }
    return {};
  }

  [[nodiscard]] bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

 private:
  result<std::vector<float>> floats(const std::string& name, std::span<const std::uint64_t> shape,
                                    std::uint64_t count) {
    REDLINE_TRY_ASSIGN(const gguf::tensor* t, find(name, shape));
    const std::optional<weight_type> type = matrix_type(t->type);
    if (!type || kernels::block_columns(*type) != 1) return wrong_type(*t, "F32, F16 or BF16");
    using kernels::element_type;
    const element_type element = *type == weight_type::f32   ? element_type::f32
                                 : *type == weight_type::f16 ? element_type::f16
                                                             : element_type::bf16;
    std::vector<float> values(count);
    table_.widen(element, t->bytes.data(), count, values.data());
    done(*t);
    return values;
  }

  result<const gguf::tensor*> find(const std::string& name, std::span<const std::uint64_t> wanted) {
    const gguf::tensor* t = file_.find_tensor(name);
    if (t == nullptr) return failure{errc::file_malformed, file_.path() + ": tensor '" + name + "' is missing"};
    if (!std::equal(wanted.begin(), wanted.end(), t->dimensions.begin(), t->dimensions.end())) {
      return failure{errc::file_malformed, file_.path() + ": tensor '" + name + "': expected shape " +
                                               shape_text(wanted) + ", found " + shape_text(t->dimensions)};
    }
    used_.insert(t->name);
    return t;
  }

  result<std::vector<kernels::packed_weights>> matrices(const std::string& name, std::span<const std::uint64_t> shape,
                                                        const std::vector<std::uint64_t>& rows_of_each) {
    REDLINE_TRY_ASSIGN(const gguf::tensor* t, find(name, shape));
    const std::uint64_t columns = shape[0];
    REDLINE_TRY_ASSIGN(const weight_type type, block_type(*t, columns));
    try {
      return pack(*t, t->bytes.data(), type, columns, rows_of_each);
    } catch (const std::bad_alloc&) {
      return no_memory(*t);
    }
  }

  /// Packs the stacked matrices at `source`, which are all of the tensor. Throws std::bad_alloc.
  std::vector<kernels::packed_weights> pack(const gguf::tensor& t, const std::byte* source, weight_type type,
                                            std::uint64_t columns, const std::vector<std::uint64_t>& rows_of_each) {
    std::vector<kernels::packed_weights::request> requests;
    for (const std::uint64_t rows : rows_of_each) {
      requests.push_back({rows, source, take(matrix_bytes(type, rows, columns, table_))});
      source += rows * kernels::row_bytes(type, columns);
    }
    auto packed = kernels::packed_weights::pack_all(table_, team_, type, columns, requests);
    done(t);
    return packed;
  }

  /// The type of a matrix whose rows have this many numbers, which must be whole blocks.
  [[nodiscard]] result<weight_type> block_type(const gguf::tensor& t, std::uint64_t columns) const {
    const std::optional<weight_type> type = matrix_type(t.type);
    if (!type) return wrong_type(t, "one of " + known_types());
    if (columns % kernels::block_columns(*type) == 0) return *type;
    return failure{errc::file_malformed, file_.path() + ": tensor '" + std::string(t.name) +
                                             "': expected rows of whole blocks of " +
                                             std::to_string(kernels::block_columns(*type)) + ", found " +
                                             std::to_string(columns) + " columns"};
  }

  [[nodiscard]] failure no_memory(const gguf::tensor& t) const {
    return {errc::io_error, file_.path() + ": tensor '" + std::string(t.name) + "': no memory to repack " +
                                std::to_string(t.bytes.size()) + " bytes"};
  }

  /// Takes memory for a matrix; nullptr if none is left, because a file names a matrix twice.
  std::byte* take(std::uint64_t bytes) {
    if (bytes > free_.size()) return nullptr;
    std::byte* place = free_.data();
    free_ = free_.subspan(bytes);
    return place;
  }

  [[nodiscard]] failure wrong_type(const gguf::tensor& t, const std::string& wanted) const {
    return {errc::unsupported_format, file_.path() + ": tensor '" + std::string(t.name) + "': expected " + wanted +
                                          ", found " + gguf::name_of(t.type)};
  }

  void done(const gguf::tensor& t) {
    file_.drop_from_memory(t);
    done_bytes_ += t.bytes.size();
    if (progress_) progress_(done_bytes_, all_bytes_);
  }

  const gguf::gguf_file& file_;
  const kernels::kernel_table& table_;
  kernels::worker_team& team_;
  const std::function<void(std::uint64_t, std::uint64_t)>& progress_;
  std::span<std::byte> free_;  // rest of the memory for matrices
  std::set<std::string_view> used_;
  std::uint64_t done_bytes_ = 0;
  std::uint64_t all_bytes_ = 0;
};

/// "blk.3" for a tensor of that layer.
std::string layer_prefix(const tensor& t) { return t.gguf.substr(0, t.gguf.find('.', t.gguf.find('.') + 1)); }

result<norm_weights> load_norm(loader& from, const model_shape& c, const tensor* scale, const tensor* shift) {
  norm_weights n;
  REDLINE_TRY_ASSIGN(n.scale, from.vector(scale));
  REDLINE_TRY_ASSIGN(n.shift, from.vector(shift));
  const bool lacks_shift = c.kind->norm == architecture::norm_kind::layer && n.shift.empty();
  if (lacks_shift) n.shift.assign(n.scale.size(), 0);
  return n;
}

/// Loads gate, up and down; gate and up may be one tensor, `up`.
result<feed_forward_weights> load_feed_forward(loader& from, const model_shape& c, const tensor* gate, const tensor* up,
                                               const tensor* down) {
  feed_forward_weights f;
  if (c.kind->has_fused_gate()) {
    REDLINE_TRY_ASSIGN(auto both, from.stacked(*up, {up->rows / 2, up->rows / 2}));
    f.gate = std::move(both[0]);
    f.up = std::move(both[1]);
  } else {
    REDLINE_TRY_ASSIGN(f.gate, from.matrix(gate));
    REDLINE_TRY_ASSIGN(f.up, from.matrix(up));
  }
  REDLINE_TRY_ASSIGN(f.down, from.matrix(down));
  return f;
}

result<void> load_expert_biases(loader& from, const tensor_list& t, mixture_weights& m) {
  if (t.find(role::router_bias) == nullptr) return {};
  REDLINE_TRY_ASSIGN(m.router_bias, from.vector(t.find(role::router_bias)));
  REDLINE_TRY_ASSIGN(auto gate_biases, from.vectors(*t.find(role::expert_gate_biases)));
  REDLINE_TRY_ASSIGN(auto up_biases, from.vectors(*t.find(role::expert_up_biases)));
  REDLINE_TRY_ASSIGN(auto down_biases, from.vectors(*t.find(role::expert_down_biases)));
  for (std::size_t e = 0; e < m.experts.size(); ++e) {
    m.experts[e].gate_bias = std::move(gate_biases[e]);
    m.experts[e].up_bias = std::move(up_biases[e]);
    m.experts[e].down_bias = std::move(down_biases[e]);
  }
  return {};
}

/// Files may have the gates and ups of each expert stacked, in one tensor.
result<void> load_gates_and_ups(loader& from, const tensor_list& t, mixture_weights& m) {
  const tensor& gates = *t.find(role::expert_gates);
  const std::string both = layer_prefix(gates) + std::string(gates_and_ups);
  if (from.has(both)) {
    REDLINE_TRY_ASSIGN(auto all, from.pairs(both, gates));
    for (std::size_t e = 0; e < m.experts.size(); ++e) {
      m.experts[e].gate = std::move(all[2 * e]);
      m.experts[e].up = std::move(all[2 * e + 1]);
    }
    return {};
  }
  REDLINE_TRY_ASSIGN(auto all_gates, from.matrices(gates));
  REDLINE_TRY_ASSIGN(auto all_ups, from.matrices(*t.find(role::expert_ups)));
  for (std::size_t e = 0; e < m.experts.size(); ++e) {
    m.experts[e].gate = std::move(all_gates[e]);
    m.experts[e].up = std::move(all_ups[e]);
  }
  return {};
}

result<mixture_weights> load_mixture(loader& from, const model_shape& c, const tensor_list& t) {
  mixture_weights m;
  REDLINE_TRY_ASSIGN(m.router, from.matrix(t.find(role::router)));
  m.experts.resize(c.experts);
  REDLINE_TRY(load_gates_and_ups(from, t, m));
  REDLINE_TRY_ASSIGN(auto downs, from.matrices(*t.find(role::expert_downs)));
  for (std::uint32_t e = 0; e < c.experts; ++e) m.experts[e].down = std::move(downs[e]);
  REDLINE_TRY_ASSIGN(m.selection_bias, from.finite(t.find(role::selection_bias)));
  REDLINE_TRY_ASSIGN(m.expert_scales, from.finite(t.find(role::expert_scales)));
  REDLINE_TRY(load_expert_biases(from, t, m));
  REDLINE_TRY_ASSIGN(m.shared_router, from.row(t.find(role::shared_router)));
  REDLINE_TRY_ASSIGN(m.shared, load_feed_forward(from, c, t.find(role::shared_gate), t.find(role::shared_up),
                                                 t.find(role::shared_down)));
  return m;
}

result<void> load_latents(loader& from, const model_shape& c, const tensor_list& t, latent_weights& w) {
  REDLINE_TRY_ASSIGN(w.query_down, from.matrix(t.find(role::query_down)));
  REDLINE_TRY_ASSIGN(w.query_norm, from.vector(t.find(role::query_down_norm)));
  REDLINE_TRY_ASSIGN(w.down, from.matrix(t.find(role::latent_down)));
  REDLINE_TRY_ASSIGN(w.norm, from.vector(t.find(role::latent_norm)));
  const tensor &keys = *t.find(role::latent_keys), &values = *t.find(role::latent_values);
  const std::string both = layer_prefix(keys) + std::string(keys_and_values);
  if (from.has(both)) {
    REDLINE_TRY_ASSIGN(auto of_heads, from.turned(both, c.heads, keys.columns, values.rows, keys.rows));
    w.of_query = std::move(of_heads.keys);
    w.of_value = std::move(of_heads.values);
    return {};
  }
  REDLINE_TRY_ASSIGN(w.of_query, from.matrices(keys));
  REDLINE_TRY_ASSIGN(w.of_value, from.matrices(values));
  return {};
}

/// Loads Q, K and V, and their norms.
result<void> load_inputs_of_attention(loader& from, const model_shape& c, const tensor_list& t, layer_weights& l) {
  if (const tensor* all = t.find(role::query_key_value)) {
    REDLINE_TRY_ASSIGN(auto parts, from.stacked(*all, attention_rows(c)));
    l.query = std::move(parts[0]);
    l.key = std::move(parts[1]);
    l.value = std::move(parts[2]);
  } else if (c.kind->gates_attention) {
    REDLINE_TRY_ASSIGN(auto both, from.by_turns(*t.find(role::query), c.head_dim));
    l.query = std::move(both[0]);
    l.query_gate = std::move(both[1]);
    REDLINE_TRY_ASSIGN(l.key, from.matrix(t.find(role::key)));
    REDLINE_TRY_ASSIGN(l.value, from.matrix(t.find(role::value)));
  } else {
    const tensor* const direct = t.find(role::query);
    REDLINE_TRY_ASSIGN(l.query, from.matrix(direct != nullptr ? direct : t.find(role::query_up)));
    REDLINE_TRY_ASSIGN(l.key, from.matrix(t.find(role::key)));
    REDLINE_TRY_ASSIGN(l.value, from.matrix(t.find(role::value)));
  }
  if (c.latent) REDLINE_TRY(load_latents(from, c, t, l.latents));
  REDLINE_TRY_ASSIGN(l.query_bias, from.vector(t.find(role::query_bias)));
  REDLINE_TRY_ASSIGN(l.key_bias, from.vector(t.find(role::key_bias)));
  REDLINE_TRY_ASSIGN(l.value_bias, from.vector(t.find(role::value_bias)));
  REDLINE_TRY_ASSIGN(l.query_norm, from.vector(t.find(role::query_norm)));
  REDLINE_TRY_ASSIGN(l.key_norm, from.vector(t.find(role::key_norm)));
  if (c.kind->norm == architecture::norm_kind::layer && !l.query_norm.empty()) l.head_shift.assign(c.head_dim, 0);
  return {};
}

/// Loads the inputs of a recurrent layer.
result<void> load_delta(loader& from, const architecture::delta_shape& d, const tensor_list& t, delta_weights& w) {
  const tensor& input = *t.find(role::delta_input);
  const std::string packed = layer_prefix(input) + std::string(packed_input);
  if (from.has(packed)) {
    REDLINE_TRY_ASSIGN(auto parts, from.reordered(packed, input.columns, {d.channels(), d.values()},
                                                  [&](std::uint64_t row) { return d.packed_row(row); }));
    w.input = std::move(parts[0]);
    w.gate = std::move(parts[1]);
  } else {
    REDLINE_TRY_ASSIGN(w.input, from.matrix(&input));
    REDLINE_TRY_ASSIGN(w.gate, from.matrix(t.find(role::delta_gate)));
  }
  if (const tensor* both = t.find(role::delta_strength_and_decay_input)) {
    REDLINE_TRY_ASSIGN(auto parts, from.by_turns(*both, d.values_per_key()));
    w.strength = std::move(parts[0]);
    w.decay_input = std::move(parts[1]);
  } else {
    REDLINE_TRY_ASSIGN(w.decay_input, from.matrix(t.find(role::delta_decay_input)));
    REDLINE_TRY_ASSIGN(w.strength, from.matrix(t.find(role::delta_strength)));
  }
  REDLINE_TRY_ASSIGN(w.decay_bias, from.finite(t.find(role::delta_decay_bias)));
  REDLINE_TRY_ASSIGN(w.decay, from.not_positive(t.find(role::delta_decay)));
  REDLINE_TRY_ASSIGN(w.norm, from.vector(t.find(role::delta_norm)));
  return {};
}

/// Loads the norms of a mixture beside a dense part.
result<void> load_norms_beside(loader& from, const model_shape& c, const tensor_list& t, layer_weights& l) {
  REDLINE_TRY_ASSIGN(l.dense_post_norm, load_norm(from, c, t.find(role::dense_post_norm), nullptr));
  REDLINE_TRY_ASSIGN(l.expert_norm, load_norm(from, c, t.find(role::expert_norm), nullptr));
  REDLINE_TRY_ASSIGN(l.expert_post_norm, load_norm(from, c, t.find(role::expert_post_norm), nullptr));
  REDLINE_TRY_ASSIGN(l.router_norm, load_norm(from, c, t.find(role::router_scale), nullptr));
  const float root = std::sqrt(static_cast<float>(c.width));
  for (float& scale : l.router_norm.scale) scale /= root;
  return {};
}

/// Loads what a layer adds for a token's embedding, and the scale of its output.
result<void> load_layer_input(loader& from, const model_shape& c, const tensor_list& t, layer_weights& l) {
  REDLINE_TRY_ASSIGN(l.input.gate, from.matrix(t.find(role::layer_input_gate)));
  REDLINE_TRY_ASSIGN(l.input.projection, from.matrix(t.find(role::layer_input_projection)));
  REDLINE_TRY_ASSIGN(l.input.post_norm, load_norm(from, c, t.find(role::layer_input_post_norm), nullptr));
  REDLINE_TRY_ASSIGN(const std::vector<float> scale, from.finite(t.find(role::layer_scale)));
  if (!scale.empty()) l.scale = scale.front();
  return {};
}

result<layer_weights> load_layer(loader& from, const model_shape& c, std::uint32_t index) {
  const tensor_list t(layer_tensors(c, index));
  layer_weights l;
  REDLINE_TRY_ASSIGN(l.attention_norm,
                     load_norm(from, c, t.find(role::attention_norm), t.find(role::attention_norm_shift)));
  if (c.is_recurrent(index)) {
    if (c.delta) REDLINE_TRY(load_delta(from, *c.delta, t, l.delta));
    REDLINE_TRY_ASSIGN(l.convolution_input, from.matrix(t.find(role::convolution_input)));
    REDLINE_TRY_ASSIGN(l.short_convolution, from.transposed(t.find(role::short_convolution)));
    REDLINE_TRY_ASSIGN(l.output, from.matrix(t.find(role::state_output)));
  } else {
    REDLINE_TRY(load_inputs_of_attention(from, c, t, l));
    REDLINE_TRY_ASSIGN(l.output, from.matrix(t.find(role::attention_output)));
  }
  REDLINE_TRY_ASSIGN(l.output_bias, from.vector(t.find(role::attention_output_bias)));
  REDLINE_TRY_ASSIGN(l.sinks, from.vector(t.find(role::sinks)));
  REDLINE_TRY_ASSIGN(l.feed_forward_norm,
                     load_norm(from, c, t.find(role::feed_forward_norm), t.find(role::feed_forward_norm_shift)));
  REDLINE_TRY_ASSIGN(l.attention_post_norm, load_norm(from, c, t.find(role::attention_post_norm), nullptr));
  REDLINE_TRY_ASSIGN(l.feed_forward_post_norm, load_norm(from, c, t.find(role::feed_forward_post_norm), nullptr));
  REDLINE_TRY(load_layer_input(from, c, t, l));
  if (c.is_mixture(index)) {
    REDLINE_TRY_ASSIGN(l.mixture, load_mixture(from, c, t));
    if (!c.kind->adds_mixture()) return l;
    REDLINE_TRY(load_norms_beside(from, c, t, l));
  }
  REDLINE_TRY_ASSIGN(l.feed_forward,
                     load_feed_forward(from, c, t.find(role::gate), t.find(role::up), t.find(role::down)));
  REDLINE_TRY_ASSIGN(l.feed_forward.up_bias, from.vector(t.find(role::up_bias)));
  REDLINE_TRY_ASSIGN(l.feed_forward.down_bias, from.vector(t.find(role::down_bias)));
  return l;
}

/// Only the most frequent tokens, which byte-pair encodings have first, are drafted: a head of all rows would take most
/// of the time.
constexpr std::size_t mtp_head_rows = 32'768;

result<mtp_weights> load_mtp(loader& from, const model_shape& c, const kernels::packed_weights& head) {
  mtp_weights m;
  const tensor_list t(layer_tensors(c, c.layers));
  REDLINE_TRY_ASSIGN(m.embedding_norm, from.vector(t.find(role::mtp_embedding_norm)));
  REDLINE_TRY_ASSIGN(m.state_norm, from.vector(t.find(role::mtp_state_norm)));
  REDLINE_TRY_ASSIGN(m.input, from.matrix(t.find(role::mtp_input)));
  REDLINE_TRY_ASSIGN(m.output_norm, load_norm(from, c, t.find(role::mtp_output_norm), nullptr));
  m.head = head.first(mtp_head_rows);
  return m;
}

/// Loads the divisors of frequencies: rotary_dim / 2 positive numbers.
result<std::vector<float>> load_divisors(loader& from, const gguf::gguf_file& file, const model_shape& c,
                                         const std::string& name) {
  REDLINE_TRY_ASSIGN(std::vector<float> divisors, from.vector(name, c.rotated() / 2));
  for (const float divisor : divisors) {
    if (std::isfinite(divisor) && divisor > 0) continue;
    return failure{errc::file_malformed, file.path() + ": tensor '" + name + "': expected positive divisors, found " +
                                             std::to_string(divisor)};
  }
  return divisors;
}

}  // namespace

result<std::shared_ptr<const weights>> load_weights(const gguf::gguf_file& file, const kernels::kernel_table& table,
                                                    kernels::worker_team& team,
                                                    const std::function<void(std::uint64_t, std::uint64_t)>& progress,
                                                    std::uint32_t context_max) {
  const auto w = std::make_shared<weights>();
  w->table = &table;
  REDLINE_TRY_ASSIGN(w->config, architecture::read_shape(file));
  const model_shape& c = w->config;
  try {
    w->matrices = kernels::memory_block(matrix_bytes(file, c, table));
  } catch (const std::bad_alloc&) {
    return failure{errc::io_error, file.path() + ": no memory to repack " +
                                       std::to_string(matrix_bytes(file, c, table)) + " bytes of weights"};
  }
  loader from(file, table, team, progress, w->matrices);
  const tensor_list outer(outer_tensors(c));
  REDLINE_TRY_ASSIGN(w->embedding, from.matrix(outer.find(role::token_embedding)));
  REDLINE_TRY_ASSIGN(w->head, from.matrix(outer.find(role::output)));
  tensor last_norm = *outer.find(role::output_norm);
  if (!from.has(last_norm.gguf) && from.has(std::string(usual_last_norm))) last_norm.gguf = usual_last_norm;
  REDLINE_TRY_ASSIGN(w->output_norm, load_norm(from, c, &last_norm, outer.find(role::output_norm_shift)));
  if (c.varied || from.has("rope_freqs.weight")) {
    REDLINE_TRY_ASSIGN(w->rope_factors, load_divisors(from, file, c, "rope_freqs.weight"));
  } else if (c.short_context != 0) {
    REDLINE_TRY_ASSIGN(auto of_long, load_divisors(from, file, c, "rope_factors_long.weight"));
    REDLINE_TRY_ASSIGN(auto of_short, load_divisors(from, file, c, "rope_factors_short.weight"));
    w->rope_factors = architecture::uses_long_factors(c, context_max) ? std::move(of_long) : std::move(of_short);
  }
  REDLINE_TRY_ASSIGN(w->layer_embedding, from.matrix(outer.find(role::layer_embedding)));
  REDLINE_TRY_ASSIGN(w->layer_projection, from.matrix(outer.find(role::layer_projection)));
  REDLINE_TRY_ASSIGN(w->layer_projection_norm, from.vector(outer.find(role::layer_projection_norm)));
  w->layers.reserve(c.read_layers());
  for (std::uint32_t i = 0; i < c.read_layers(); ++i) {
    REDLINE_TRY_ASSIGN(layer_weights layer, load_layer(from, c, i));
    w->layers.push_back(std::move(layer));
  }
  if (c.has_mtp()) {
    REDLINE_TRY_ASSIGN(w->mtp, load_mtp(from, c, w->output_head()));
  }
  REDLINE_TRY(from.check_all_used(c));
  REDLINE_TRY(file.check_unchanged());
  return std::shared_ptr<const weights>(w);
}

std::uint64_t weight_bytes(const gguf::gguf_file& file, const kernels::kernel_table& table) {
  std::uint64_t bytes = 0;
  const auto read = architecture::read_shape(file);
  const model_shape config = read ? *read : model_shape();  // without a shape nothing is loaded
  for (const gguf::tensor& t : file.tensors()) {
    if (config.is_extra(t.name)) continue;
    const std::uint64_t packed = matrix_bytes(t, config, table);
    bytes += packed != 0 ? packed : t.element_count() * sizeof(float);  // vectors are stored as floats
  }
  return bytes;
}

const model_shape& shape_of(const weights& w) { return w.config; }

}  // namespace redline::model
