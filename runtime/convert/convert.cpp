#include "runtime/convert/convert.hpp"

#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/base/hex.hpp"
#include "runtime/convert/output_path.hpp"
#include "runtime/convert/row_stream.hpp"
#include "runtime/huggingface/model_config.hpp"
#include "runtime/huggingface/model_folder.hpp"
#include "runtime/huggingface/tokenizer.hpp"

namespace redline::convert {
namespace {

using huggingface::json_object;
using huggingface::model_config;
using huggingface::model_folder;

std::optional<weight_type> weight_type_of(std::string_view safetensors_type) {
  for (const weight_type type : {weight_type::f32, weight_type::f16, weight_type::bf16}) {
    if (safetensors_type == kernels::name_of(type)) return type;
  }
  return std::nullopt;
}

/// Rows in the order of llama files, where rotated pairs are neighbours: row 2i of a head is row i of theirs, row 2i +
/// 1 is row i + half.
row_source with_adjacent_pairs(row_source theirs, std::uint32_t head_dim) {
  return [theirs = std::move(theirs), head_dim](std::uint64_t row, float* out) {
    const std::uint64_t in_head = row % head_dim;
    theirs(row - in_head + in_head % 2 * (head_dim / 2) + in_head / 2, out);
  };
}

/// Norms that multiply by one plus their weight, as a norm that multiplies by its weight.
row_source plus_one(row_source theirs) {
  return [theirs = std::move(theirs)](std::uint64_t row, float* out) {
    theirs(row, out);
    *out += 1;
  };
}

constexpr std::uint64_t mxfp4_columns = 32;

/// Neighbours in a byte, as Hugging Face folders have them, become numbers half a block apart, as GGUF files do.
void repack_mxfp4(const std::byte* from, std::byte* to) {
  constexpr std::size_t half = mxfp4_columns / 2;
  const auto step = [from](std::size_t i) {
    const auto both = std::to_integer<unsigned>(from[i / 2]);
    return i % 2 == 0 ? both & 15 : both >> 4;
  };
  for (std::size_t i = 0; i < half; ++i) to[i] = static_cast<std::byte>(step(i) | step(i + half) << 4);
}

/// What a tensor's rows are: dimensions of heads that RoPE rotates, or numbers of a norm.
enum class row_kind { plain, rotated, norm };

/// Takes tensors out of a folder one by one, checks them, and remembers which were asked for.
class tensor_mover {
 public:
  tensor_mover(const model_folder& from, const model_config& config, const output_type& type,
               kernels::worker_team& team, gguf::gguf_writer& to)
      : from_(from), shape_(config.shape), type_(type), team_(team), to_(to) {
    for (const auto& [name, place] : from.tensors()) {
      const auto known_as = config.is_wrapped ? huggingface::text_name(name) : std::optional(name);
      if (!known_as) {
        ++left_out_;
      } else if (!tensors_.emplace(*known_as, named_place{name, place}).second) {
        twice_.push_back({name, place});
      }
    }
  }

  result<void> matrix(const std::string& ours, const std::string& theirs, std::uint64_t rows, std::uint64_t columns,
                      row_kind kind = row_kind::plain) {
    const weight_type wanted = type_for(type_, {ours, columns, shape_.layers, shape_.tied_head});
    return move(ours, theirs, {rows, columns}, wanted, kind);
  }

  result<void> vector(const std::string& ours, const std::string& theirs, std::uint64_t length,
                      row_kind kind = row_kind::plain) {
    return move(ours, theirs, {length}, weight_type::f32, kind);
  }

  /// A matrix of each expert, `theirs_before`0`theirs_after` and so on, as one tensor.
  result<void> experts(const std::string& ours, const std::string& theirs_before, const std::string& theirs_after,
                       std::uint64_t rows, std::uint64_t columns) {
    const std::uint64_t shape[] = {rows, columns};
    std::vector<row_source> sources;
    std::vector<model_folder::place> places;
    for (std::uint32_t e = 0; e < shape_.experts; ++e) {
      const std::string theirs = theirs_before + std::to_string(e) + theirs_after;
      REDLINE_TRY_ASSIGN(const model_folder::place from, find(theirs, shape));
      REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, theirs));
      sources.push_back(stored_rows(stored, from.tensor->bytes.data(), columns));
      places.push_back(from);
    }
    const weight_type wanted = type_for(type_, {ours, columns, shape_.layers, shape_.tied_head});
    const std::uint64_t dimensions[] = {columns, rows, shape_.experts}, all = rows * shape_.experts;
    const auto row_of = [sources = std::move(sources), rows](std::uint64_t row, float* out) {
      sources[row / rows](row % rows, out);
    };
    to_.add_tensor(ours, to_tensor_type(wanted), dimensions, all * kernels::row_bytes(wanted, columns),
                   followed_by(stream_rows(team_, wanted, all, columns, row_of), [places = std::move(places)] {
                     for (const model_folder::place& from : places) from.file->drop_from_memory(*from.tensor);
                   }));
    return {};
  }

  /// Rows [first, first + rows) of each expert's matrix of `their_rows` rows, as one tensor.
  result<void> slices(const std::string& ours, const std::string& theirs, std::uint64_t their_rows, std::uint64_t first,
                      std::uint64_t rows, std::uint64_t columns) {
    const std::uint64_t shape[] = {shape_.experts, their_rows, columns};
    REDLINE_TRY_ASSIGN(const model_folder::place from, find(theirs, shape));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, theirs));
    const weight_type wanted = type_for(type_, {ours, columns, shape_.layers, shape_.tied_head});
    const std::uint64_t dimensions[] = {columns, rows, shape_.experts}, all = rows * shape_.experts;
    const auto row_of = [source = stored_rows(stored, from.tensor->bytes.data(), columns), their_rows, first, rows](
                            std::uint64_t row, float* out) {
      source(row / rows * their_rows + first + row % rows, out);
    };
    to_.add_tensor(ours, to_tensor_type(wanted), dimensions, all * kernels::row_bytes(wanted, columns),
                   stream_rows(team_, wanted, all, columns, row_of));
    return {};
  }

  /// A matrix of one row, as a vector.
  result<void> row(const std::string& ours, const std::string& theirs, std::uint64_t columns) {
    const std::uint64_t shape[] = {1, columns};
    REDLINE_TRY_ASSIGN(const model_folder::place from, find(theirs, shape));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, theirs));
    const std::uint64_t dimensions[] = {columns};
    to_.add_tensor(
        ours, gguf::tensor_type::f32, dimensions, columns * sizeof(float),
        stream_rows(team_, weight_type::f32, 1, columns, stored_rows(stored, from.tensor->bytes.data(), columns)));
    return {};
  }

  /// Experts in MXFP4, `theirs`_blocks and `theirs`_scales of [experts, their_rows, ...], of whose rows ours are each
  /// `step`-th from `first` on. They stay MXFP4, whatever the type of the others: nothing is rounded again.
  result<void> packed_experts(const std::string& ours, const std::string& theirs, std::uint64_t first,
                              std::uint64_t step, std::uint64_t rows, std::uint64_t columns) {
    const std::uint64_t blocks = columns / mxfp4_columns, their_rows = rows * step;
    if (columns % mxfp4_columns != 0) {
      return failure{errc::file_malformed, from_.path() + ": tensor '" + theirs + "_blocks': expected rows of whole " +
                                               "blocks of " + std::to_string(mxfp4_columns) + ", found " +
                                               std::to_string(columns) + " columns"};
    }
    const std::uint64_t shape[] = {shape_.experts, their_rows, blocks, mxfp4_columns / 2};
    REDLINE_TRY_ASSIGN(const model_folder::place steps, find(theirs + "_blocks", shape));
    REDLINE_TRY_ASSIGN(const model_folder::place scales, find(theirs + "_scales", std::span(shape).first(3)));
    for (const auto& [place, suffix] : {std::pair(steps, "_blocks"), {scales, "_scales"}}) {
      if (place.tensor->type == "U8") continue;
      return failure{errc::unsupported_format, place.file->path() + ": " + quote_bytes(theirs + suffix) +
                                                   ".dtype: expected U8, found " + std::string(place.tensor->type)};
    }
    const std::uint64_t dimensions[] = {columns, rows, shape_.experts}, all = rows * shape_.experts;
    const auto pack = [steps, scales, first, step, all, blocks](const gguf::payload_sink& put) -> result<void> {
      std::vector<std::byte> row(blocks * (1 + mxfp4_columns / 2));
      for (std::uint64_t r = 0; r < all; ++r) {
        const std::uint64_t block = (r * step + first) * blocks;
        for (std::uint64_t b = 0; b < blocks; ++b) {
          std::byte* to = row.data() + b * (1 + mxfp4_columns / 2);
          *to = scales.tensor->bytes[block + b];
          repack_mxfp4(steps.tensor->bytes.data() + (block + b) * (mxfp4_columns / 2), to + 1);
        }
        REDLINE_TRY(put(row));
      }
      return {};
    };
    to_.add_tensor(ours, gguf::tensor_type::mxfp4, dimensions, all * blocks * (1 + mxfp4_columns / 2), pack);
    return {};
  }

  /// The same of experts that are not quantised, which lie as [experts, columns, rows * step].
  result<void> transposed_experts(const std::string& ours, const std::string& theirs, std::uint64_t first,
                                  std::uint64_t step, std::uint64_t rows, std::uint64_t columns) {
    const std::uint64_t their_columns = rows * step, shape[] = {shape_.experts, columns, their_columns};
    REDLINE_TRY_ASSIGN(const model_folder::place from, find(theirs, shape));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, theirs));
    const weight_type wanted = type_for(type_, {ours, columns, shape_.layers, shape_.tied_head});
    const auto row_of = [number = stored_rows(stored, from.tensor->bytes.data(), 1), their_columns, first, step, rows,
                         columns](std::uint64_t row, float* out) {
      const std::uint64_t at = row / rows * columns * their_columns + first + row % rows * step;
      for (std::uint64_t c = 0; c < columns; ++c) number(at + c * their_columns, out + c);
    };
    const std::uint64_t dimensions[] = {columns, rows, shape_.experts}, all = rows * shape_.experts;
    to_.add_tensor(ours, to_tensor_type(wanted), dimensions, all * kernels::row_bytes(wanted, columns),
                   stream_rows(team_, wanted, all, columns, row_of));
    return {};
  }

  /// Of each head the rows that make its keys of a vector of `rank` numbers, `plain` of them, and those that make its
  /// values, one above the other: the first turned, [rank, plain], in a tensor of their own, the others in another one.
  result<void> latents(const std::string& our_keys, const std::string& our_values, const std::string& theirs) {
    const std::uint64_t rank = shape_.latent_rank, plain = shape_.plain_dim(), values = shape_.value_dim;
    const std::uint64_t heads = shape_.heads, of_head = plain + values, shape[] = {heads * of_head, rank};
    REDLINE_TRY_ASSIGN(const model_folder::place from, find(theirs, shape));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, theirs));
    const auto key_row = [number = stored_rows(stored, from.tensor->bytes.data(), 1), rank, plain, of_head](
                             std::uint64_t row, float* out) {
      const std::uint64_t first = row / rank * of_head * rank + row % rank;
      for (std::uint64_t k = 0; k < plain; ++k) number(first + k * rank, out + k);
    };
    const auto value_row = [source = stored_rows(stored, from.tensor->bytes.data(), rank), plain, values, of_head](
                               std::uint64_t row, float* out) {
      source(row / values * of_head + plain + row % values, out);
    };
    const auto add = [&](const std::string& ours, std::uint64_t rows, std::uint64_t columns, row_source row_of) {
      const weight_type wanted = type_for(type_, {ours, columns, shape_.layers, shape_.tied_head});
      const std::uint64_t dimensions[] = {columns, rows, heads}, all = rows * heads;
      to_.add_tensor(ours, to_tensor_type(wanted), dimensions, all * kernels::row_bytes(wanted, columns),
                     stream_rows(team_, wanted, all, columns, std::move(row_of)));
    };
    add(our_keys, rank, plain, key_row);
    add(our_values, values, rank, value_row);
    return {};
  }

  /// A bias of each expert, of [experts, length * step]: each `step`-th number from `first` on.
  result<void> expert_biases(const std::string& ours, const std::string& theirs, std::uint64_t first,
                             std::uint64_t step, std::uint64_t length) {
    const std::uint64_t their_length = length * step, shape[] = {shape_.experts, their_length};
    REDLINE_TRY_ASSIGN(const model_folder::place from, find(theirs, shape));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, theirs));
    const auto row_of = [source = stored_rows(stored, from.tensor->bytes.data(), their_length), their_length, first,
                         step, length](std::uint64_t row, float* out) {
      std::vector<float> all(their_length);
      source(row, all.data());
      for (std::uint64_t i = 0; i < length; ++i) out[i] = all[first + i * step];
    };
    const std::uint64_t dimensions[] = {length, shape_.experts};
    to_.add_tensor(ours, gguf::tensor_type::f32, dimensions, shape_.experts * length * sizeof(float),
                   stream_rows(team_, weight_type::f32, shape_.experts, length, row_of));
    return {};
  }

  [[nodiscard]] bool has(const std::string& theirs) const { return tensors_.contains(theirs); }
  /// Tensors of parts that are no text.
  [[nodiscard]] std::size_t left_out() const { return left_out_; }

  [[nodiscard]] result<void> check_all_used() const {
    for (const auto& [name, known] : tensors_) {
      // The first can be computed, the second is the embedding again.
      const bool redundant = name.ends_with(".rotary_emb.inv_freq") || (shape_.tied_head && name == "lm_head.weight");
      if (redundant || used_.contains(name)) continue;
      return without_place(known);
    }
    if (!twice_.empty()) return without_place(twice_.front());
    return {};
  }

 private:
  /// A vector is moved as rows of one number.
  result<void> move(const std::string& ours, const std::string& theirs, std::vector<std::uint64_t> shape,
                    weight_type wanted, row_kind kind) {
    REDLINE_TRY_ASSIGN(const model_folder::place from, find(theirs, shape));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, theirs));
    const std::uint64_t rows = shape[0], columns = shape.size() == 2 ? shape[1] : 1;
    row_source source = stored_rows(stored, from.tensor->bytes.data(), columns);
    if (kind == row_kind::rotated && shape_.moves_pairs()) {
      source = with_adjacent_pairs(std::move(source), shape_.head_dim);
    }
    if (kind == row_kind::norm && shape_.is_gemma()) source = plus_one(std::move(source));
    const std::vector<std::uint64_t> dimensions(shape.rbegin(), shape.rend());
    to_.add_tensor(ours, to_tensor_type(wanted), dimensions, rows * kernels::row_bytes(wanted, columns),
                   followed_by(stream_rows(team_, wanted, rows, columns, std::move(source)),
                               [from] { from.file->drop_from_memory(*from.tensor); }));
    return {};
  }

  static result<weight_type> stored_type(const model_folder::place& from, const std::string& theirs) {
    if (const auto stored = weight_type_of(from.tensor->type)) return *stored;
    return failure{errc::unsupported_format, from.file->path() + ": " + quote_bytes(theirs) +
                                                 ".dtype: expected F32, F16 or BF16, found " +
                                                 std::string(from.tensor->type)};
  }

  result<model_folder::place> find(const std::string& theirs, std::span<const std::uint64_t> shape) {
    const auto it = tensors_.find(theirs);
    if (it == tensors_.end()) {
      const std::string part = left_out() == 0 ? "" : " in the part for text";
      return failure{errc::file_malformed, from_.path() + ": tensor '" + theirs + "' is missing" + part};
    }
    const auto& [name, found] = it->second;
    if (!std::equal(shape.begin(), shape.end(), found.tensor->shape.begin(), found.tensor->shape.end())) {
      return failure{errc::file_malformed, found.file->path() + ": '" + name + "'.shape: expected " +
                                               huggingface::shape_text(shape) + ", found " +
                                               huggingface::shape_text(found.tensor->shape)};
    }
    used_.insert(theirs);
    return found;
  }

  struct named_place {
    std::string name;  // in the folder
    model_folder::place at;
  };

  [[nodiscard]] failure without_place(const named_place& one) const {
    return {errc::unsupported_format, one.at.file->path() + ": " + quote_bytes(one.name) + " has no place in a " +
                                          std::string(shape_.architecture) + " model"};
  }

  const model_folder& from_;
  std::map<std::string, named_place, std::less<>> tensors_;  // by the name that they have where there is but text
  std::vector<named_place> twice_;                           // whose name another has already
  std::size_t left_out_ = 0;
  const gguf::decoder_shape& shape_;
  const output_type& type_;
  kernels::worker_team& team_;
  gguf::gguf_writer& to_;
  std::set<std::string, std::less<>> used_;
};

/// A norm's weight, and its bias where norms have one.
result<void> move_norm(const gguf::decoder_shape& s, const std::string& ours, const std::string& theirs,
                       tensor_mover& mover) {
  REDLINE_TRY(mover.vector(ours + ".weight", theirs + ".weight", s.width, row_kind::norm));
  return s.has_norm_shifts() ? mover.vector(ours + ".bias", theirs + ".bias", s.width) : result<void>();
}

/// Starcoder2's feed-forward part: no gate, and biases.
result<void> move_plain_feed_forward(const gguf::decoder_shape& s, const std::string& ours, const std::string& theirs,
                                     tensor_mover& mover) {
  REDLINE_TRY(mover.matrix(ours + "ffn_up.weight", theirs + "mlp.c_fc.weight", s.feed_forward, s.width));
  REDLINE_TRY(mover.vector(ours + "ffn_up.bias", theirs + "mlp.c_fc.bias", s.feed_forward));
  REDLINE_TRY(mover.matrix(ours + "ffn_down.weight", theirs + "mlp.c_proj.weight", s.width, s.feed_forward));
  return mover.vector(ours + "ffn_down.bias", theirs + "mlp.c_proj.bias", s.width);
}

result<void> move_gated_feed_forward(const gguf::decoder_shape& s, const std::string& ours, const std::string& theirs,
                                     tensor_mover& mover) {
  if (s.has_fused_gate()) {
    REDLINE_TRY(mover.matrix(ours + "ffn_up.weight", theirs + "mlp.gate_up_proj.weight", 2 * s.feed_forward, s.width));
    return mover.matrix(ours + "ffn_down.weight", theirs + "mlp.down_proj.weight", s.width, s.feed_forward);
  }
  REDLINE_TRY(mover.matrix(ours + "ffn_gate.weight", theirs + "mlp.gate_proj.weight", s.feed_forward, s.width));
  REDLINE_TRY(mover.matrix(ours + "ffn_up.weight", theirs + "mlp.up_proj.weight", s.feed_forward, s.width));
  return mover.matrix(ours + "ffn_down.weight", theirs + "mlp.down_proj.weight", s.width, s.feed_forward);
}

/// Granite's experts are matrices in one tensor, gates and ups one after the other.
result<void> move_granite_mixture(const gguf::decoder_shape& s, const std::string& ours, const std::string& theirs,
                                  tensor_mover& mover) {
  const std::uint64_t hidden = s.expert_feed_forward;
  const std::string moe = theirs + "block_sparse_moe.", inputs = moe + "input_linear.weight";
  REDLINE_TRY(mover.matrix(ours + "ffn_gate_inp.weight", moe + "router.layer.weight", s.experts, s.width));
  REDLINE_TRY(mover.slices(ours + "ffn_gate_exps.weight", inputs, 2 * hidden, 0, hidden, s.width));
  REDLINE_TRY(mover.slices(ours + "ffn_up_exps.weight", inputs, 2 * hidden, hidden, hidden, s.width));
  return mover.slices(ours + "ffn_down_exps.weight", moe + "output_linear.weight", s.width, 0, s.width, hidden);
}

/// Gates and ups of an expert alternate.
result<void> move_gpt_oss_mixture(const gguf::decoder_shape& s, const std::string& ours, const std::string& theirs,
                                  tensor_mover& mover) {
  const std::uint64_t hidden = s.expert_feed_forward;
  const std::string router = theirs + "mlp.router.", experts = theirs + "mlp.experts.", both = experts + "gate_up_proj";
  REDLINE_TRY(mover.matrix(ours + "ffn_gate_inp.weight", router + "weight", s.experts, s.width));
  REDLINE_TRY(mover.vector(ours + "ffn_gate_inp.bias", router + "bias", s.experts));
  const auto move = mover.has(both) ? &tensor_mover::transposed_experts : &tensor_mover::packed_experts;
  REDLINE_TRY((mover.*move)(ours + "ffn_gate_exps.weight", both, 0, 2, hidden, s.width));
  REDLINE_TRY((mover.*move)(ours + "ffn_up_exps.weight", both, 1, 2, hidden, s.width));
  REDLINE_TRY((mover.*move)(ours + "ffn_down_exps.weight", experts + "down_proj", 0, 1, s.width, hidden));
  REDLINE_TRY(mover.expert_biases(ours + "ffn_gate_exps.bias", both + "_bias", 0, 2, hidden));
  REDLINE_TRY(mover.expert_biases(ours + "ffn_up_exps.bias", both + "_bias", 1, 2, hidden));
  return mover.expert_biases(ours + "ffn_down_exps.bias", experts + "down_proj_bias", 0, 1, s.width);
}

/// Mixtral's names, or those of Qwen's mixtures.
result<void> move_mixture(const gguf::decoder_shape& s, const std::string& ours, const std::string& theirs,
                          tensor_mover& mover) {
  const bool mixtral = s.architecture == "llama";
  const std::string mlp = theirs + (mixtral ? "block_sparse_moe." : "mlp.");
  const auto of_experts = [&](const char* name, const char* of_mixtral, const char* of_qwen, std::uint64_t rows,
                              std::uint64_t columns) {
    return mover.experts(ours + name, mlp + "experts.", mixtral ? of_mixtral : of_qwen, rows, columns);
  };
  const std::uint64_t hidden = s.expert_feed_forward, shared = s.shared_feed_forward;
  REDLINE_TRY(mover.matrix(ours + "ffn_gate_inp.weight", mlp + "gate.weight", s.experts, s.width));
  REDLINE_TRY(of_experts("ffn_gate_exps.weight", ".w1.weight", ".gate_proj.weight", hidden, s.width));
  REDLINE_TRY(of_experts("ffn_up_exps.weight", ".w3.weight", ".up_proj.weight", hidden, s.width));
  REDLINE_TRY(of_experts("ffn_down_exps.weight", ".w2.weight", ".down_proj.weight", s.width, hidden));
  if (shared == 0) return {};
  if (!s.is_deepseek2()) {
    REDLINE_TRY(mover.row(ours + "ffn_gate_inp_shexp.weight", mlp + "shared_expert_gate.weight", s.width));
  }
  const std::string expert = mlp + (s.is_deepseek2() ? "shared_experts." : "shared_expert.");
  REDLINE_TRY(mover.matrix(ours + "ffn_gate_shexp.weight", expert + "gate_proj.weight", shared, s.width));
  REDLINE_TRY(mover.matrix(ours + "ffn_up_shexp.weight", expert + "up_proj.weight", shared, s.width));
  return mover.matrix(ours + "ffn_down_shexp.weight", expert + "down_proj.weight", s.width, shared);
}

/// DeepSeek's queries, the vectors that keys and values are made of, and how.
result<void> move_latents(const gguf::decoder_shape& s, const std::string& ours, const std::string& theirs,
                          tensor_mover& mover) {
  const std::string attention = theirs + "self_attn.";
  const std::uint64_t queries = std::uint64_t{s.heads} * s.head_dim;
  if (s.query_rank == 0) {
    REDLINE_TRY(mover.matrix(ours + "attn_q.weight", attention + "q_proj.weight", queries, s.width));
  } else {
    REDLINE_TRY(mover.matrix(ours + "attn_q_a.weight", attention + "q_a_proj.weight", s.query_rank, s.width));
    REDLINE_TRY(mover.vector(ours + "attn_q_a_norm.weight", attention + "q_a_layernorm.weight", s.query_rank));
    REDLINE_TRY(mover.matrix(ours + "attn_q_b.weight", attention + "q_b_proj.weight", queries, s.query_rank));
  }
  REDLINE_TRY(mover.matrix(ours + "attn_kv_a_mqa.weight", attention + "kv_a_proj_with_mqa.weight",
                           s.latent_rank + s.rotary_dim, s.width));
  REDLINE_TRY(mover.vector(ours + "attn_kv_a_norm.weight", attention + "kv_a_layernorm.weight", s.latent_rank));
  return mover.latents(ours + "attn_k_b.weight", ours + "attn_v_b.weight", attention + "kv_b_proj.weight");
}

/// Norms of queries, of keys and of what each half gives.
result<void> move_olmo_norms(const gguf::decoder_shape& s, const std::string& ours, const std::string& theirs,
                             tensor_mover& mover) {
  const std::uint64_t q = std::uint64_t{s.heads} * s.head_dim, kv = std::uint64_t{s.kv_heads} * s.head_dim;
  REDLINE_TRY(mover.vector(ours + "attn_q_norm.weight", theirs + "self_attn.q_norm.weight", q));
  REDLINE_TRY(mover.vector(ours + "attn_k_norm.weight", theirs + "self_attn.k_norm.weight", kv));
  REDLINE_TRY(move_norm(s, ours + "post_attention_norm", theirs + "post_attention_layernorm", mover));
  return move_norm(s, ours + "post_ffw_norm", theirs + "post_feedforward_layernorm", mover);
}

result<void> move_layer(const gguf::decoder_shape& s, std::uint32_t index, bool biases, tensor_mover& mover) {
  const std::string ours = "blk." + std::to_string(index) + ".";
  const std::string theirs = "model.layers." + std::to_string(index) + ".";
  const std::uint64_t q = std::uint64_t{s.heads} * s.head_dim, kv = std::uint64_t{s.kv_heads} * s.head_dim;
  const row_kind rotated = row_kind::rotated;
  if (!s.is_olmo2()) REDLINE_TRY(move_norm(s, ours + "attn_norm", theirs + "input_layernorm", mover));
  if (s.has_fused_qkv()) {
    REDLINE_TRY(mover.matrix(ours + "attn_qkv.weight", theirs + "self_attn.qkv_proj.weight", q + 2 * kv, s.width));
  } else if (s.is_deepseek2()) {
    REDLINE_TRY(move_latents(s, ours, theirs, mover));
  } else {
    REDLINE_TRY(mover.matrix(ours + "attn_q.weight", theirs + "self_attn.q_proj.weight", q, s.width, rotated));
    REDLINE_TRY(mover.matrix(ours + "attn_k.weight", theirs + "self_attn.k_proj.weight", kv, s.width, rotated));
    REDLINE_TRY(mover.matrix(ours + "attn_v.weight", theirs + "self_attn.v_proj.weight", kv, s.width));
  }
  REDLINE_TRY(
      mover.matrix(ours + "attn_output.weight", theirs + "self_attn.o_proj.weight", s.width, s.attended_width()));
  if (biases) {
    REDLINE_TRY(mover.vector(ours + "attn_q.bias", theirs + "self_attn.q_proj.bias", q, rotated));
    REDLINE_TRY(mover.vector(ours + "attn_k.bias", theirs + "self_attn.k_proj.bias", kv, rotated));
    REDLINE_TRY(mover.vector(ours + "attn_v.bias", theirs + "self_attn.v_proj.bias", kv));
  }
  if (s.has_head_norms()) {
    REDLINE_TRY(
        mover.vector(ours + "attn_q_norm.weight", theirs + "self_attn.q_norm.weight", s.head_dim, row_kind::norm));
    REDLINE_TRY(
        mover.vector(ours + "attn_k_norm.weight", theirs + "self_attn.k_norm.weight", s.head_dim, row_kind::norm));
  }
  if (s.is_gpt_oss()) {
    REDLINE_TRY(mover.vector(ours + "attn_output.bias", theirs + "self_attn.o_proj.bias", s.width));
    REDLINE_TRY(mover.vector(ours + "attn_sinks.weight", theirs + "self_attn.sinks", s.heads));
    REDLINE_TRY(move_norm(s, ours + "post_attention_norm", theirs + "post_attention_layernorm", mover));
    return move_gpt_oss_mixture(s, ours, theirs, mover);
  }
  if (s.is_olmo2()) {
    REDLINE_TRY(move_olmo_norms(s, ours, theirs, mover));
    return move_gated_feed_forward(s, ours, theirs, mover);
  }
  if (s.own_head_norms) {
    REDLINE_TRY(mover.matrix(ours + "attn_q_norm.weight", theirs + "self_attn.q_norm.weight", s.heads, s.head_dim));
    REDLINE_TRY(mover.matrix(ours + "attn_k_norm.weight", theirs + "self_attn.k_norm.weight", s.kv_heads, s.head_dim));
  }
  if (s.is_command_r()) return move_gated_feed_forward(s, ours, theirs, mover);
  if (s.is_glm4()) {
    REDLINE_TRY(move_norm(s, ours + "post_attention_norm", theirs + "post_self_attn_layernorm", mover));
    REDLINE_TRY(move_norm(s, ours + "ffn_norm", theirs + "post_attention_layernorm", mover));
    REDLINE_TRY(move_norm(s, ours + "post_ffw_norm", theirs + "post_mlp_layernorm", mover));
    return move_gated_feed_forward(s, ours, theirs, mover);
  }
  if (s.has_post_norms()) {
    REDLINE_TRY(move_norm(s, ours + "post_attention_norm", theirs + "post_attention_layernorm", mover));
    REDLINE_TRY(move_norm(s, ours + "ffn_norm", theirs + "pre_feedforward_layernorm", mover));
    REDLINE_TRY(move_norm(s, ours + "post_ffw_norm", theirs + "post_feedforward_layernorm", mover));
    return move_gated_feed_forward(s, ours, theirs, mover);
  }
  REDLINE_TRY(move_norm(s, ours + "ffn_norm", theirs + "post_attention_layernorm", mover));
  if (s.architecture == "granitemoe") return move_granite_mixture(s, ours, theirs, mover);
  if (s.is_mixture(index)) return move_mixture(s, ours, theirs, mover);
  if (s.architecture != "starcoder2") return move_gated_feed_forward(s, ours, theirs, mover);
  REDLINE_TRY(mover.vector(ours + "attn_output.bias", theirs + "self_attn.o_proj.bias", s.width));
  return move_plain_feed_forward(s, ours, theirs, mover);
}

result<void> move_tensors(const gguf::decoder_shape& s, tensor_mover& mover) {
  REDLINE_TRY(mover.matrix("token_embd.weight", "model.embed_tokens.weight", s.vocabulary, s.width));
  REDLINE_TRY(move_norm(s, "output_norm", "model.norm", mover));
  if (!s.tied_head) REDLINE_TRY(mover.matrix("output.weight", "lm_head.weight", s.vocabulary, s.width));
  const bool biases = s.has_qkv_biases() || mover.has("model.layers.0.self_attn.q_proj.bias");
  for (std::uint32_t layer = 0; layer < s.layers; ++layer) REDLINE_TRY(move_layer(s, layer, biases, mover));
  return mover.check_all_used();
}

void put_rope(const model_config& config, gguf::gguf_writer& to) {
  if (config.linear_factor != 1) {
    const std::string prefix = std::string(config.shape.architecture) + ".rope.scaling.";
    to.put_string(prefix + "type", "linear");
    to.put_f32(prefix + "factor", static_cast<float>(config.linear_factor));
  }
  if (config.yarn) {
    const huggingface::yarn_scaling& yarn = *config.yarn;
    const std::string prefix = std::string(config.shape.architecture) + ".rope.scaling.";
    to.put_string(prefix + "type", "yarn");
    to.put_f32(prefix + "factor", static_cast<float>(yarn.factor));
    to.put_u32(prefix + "original_context_length", static_cast<std::uint32_t>(yarn.original_context));
    to.put_f32(prefix + "yarn_beta_fast", static_cast<float>(yarn.turns_kept));
    to.put_f32(prefix + "yarn_beta_slow", static_cast<float>(yarn.turns_slowed));
    if (yarn.score_growth != 0) to.put_f32(prefix + "yarn_log_multiplier", static_cast<float>(0.1 * yarn.score_growth));
    // Readers of GGUF multiply it with what follows from the factor.
    const double usual = 1 + 0.1 * std::log(yarn.factor);
    if (yarn.attention_factor != 0) {
      to.put_f32(prefix + "attn_factor", static_cast<float>(yarn.attention_factor / usual));
    }
  }
  const auto put_divisors = [&](const char* name, const std::vector<float>& divisors) {
    const std::uint64_t dimensions[] = {divisors.size()};
    if (divisors.empty()) return;
    to.add_tensor(name, gguf::tensor_type::f32, dimensions, std::as_bytes(std::span(divisors)));
  };
  put_divisors("rope_freqs.weight", huggingface::rope_divisors(config));
  if (!config.factors) return;
  put_divisors("rope_factors_long.weight", config.factors->long_factors);
  put_divisors("rope_factors_short.weight", config.factors->short_factors);
}

/// The folder's own name, whatever way it was spelled.
std::string name_of(const std::string& folder) {
  std::error_code unreadable;  // then it could not have been opened
  const auto whole = std::filesystem::weakly_canonical(folder, unreadable);
  return whole.filename().string();
}

result<void> move_tokenizer(const model_folder& from, const json_object& config, std::uint32_t size,
                            gguf::gguf_writer& to) {
  const auto optional_object = [&](const huggingface::json* document,
                                   std::string_view name) -> result<std::optional<json_object>> {
    if (document == nullptr) return std::optional<json_object>();
    REDLINE_TRY_ASSIGN(json_object object, json_object::of(*document, from / name));
    return std::optional(std::move(object));
  };
  REDLINE_TRY_ASSIGN(json_object tokenizer, json_object::of(from.tokenizer(), from / "tokenizer.json"));
  REDLINE_TRY_ASSIGN(auto tokenizer_config, optional_object(from.tokenizer_config(), "tokenizer_config.json"));
  REDLINE_TRY_ASSIGN(auto generation_config, optional_object(from.generation_config(), "generation_config.json"));
  return huggingface::put_tokenizer({.tokenizer = std::move(tokenizer),
                                     .config = config,
                                     .tokenizer_config = std::move(tokenizer_config),
                                     .generation_config = std::move(generation_config),
                                     .chat_template = from.chat_template()},
                                    size, to);
}

}  // namespace

result<std::size_t> convert_folder(const std::string& folder, const output_type& type, const std::string& path,
                                   kernels::worker_team& team,
                                   const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  REDLINE_TRY_ASSIGN(const model_folder from, model_folder::open(folder));
  REDLINE_TRY(keep_sources(path, from.sources()));
  REDLINE_TRY_ASSIGN(const json_object document, json_object::of(from.config(), from / "config.json"));
  REDLINE_TRY_ASSIGN(const model_config config, huggingface::read_model_config(document));
  gguf::gguf_writer out;
  gguf::put_shape(config.shape, out);
  out.put_string("general.name", name_of(folder));
  put_type(type, out);
  put_rope(config, out);
  // Before the tokenizer, so that a vocabulary's size is known to be that of a tensor that exists.
  tensor_mover mover(from, config, type, team, out);
  REDLINE_TRY(move_tensors(config.shape, mover));
  REDLINE_TRY(move_tokenizer(from, document, config.shape.vocabulary, out));
  REDLINE_TRY(out.write(path, progress));
  return mover.left_out();
}

}  // namespace redline::convert
