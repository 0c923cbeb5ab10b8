#include "runtime/convert/convert.hpp"

#include <algorithm>
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

#include "runtime/architecture/shape_keys.hpp"
#include "runtime/architecture/tensors.hpp"
#include "runtime/base/hex.hpp"
#include "runtime/base/portable_math.hpp"
#include "runtime/convert/output_path.hpp"
#include "runtime/convert/row_stream.hpp"
#include "runtime/huggingface/model_config.hpp"
#include "runtime/huggingface/model_folder.hpp"
#include "runtime/huggingface/tokenizer.hpp"

namespace redline::convert {
namespace {

using architecture::hub_form;
using architecture::tensor;
using huggingface::json_object;
using huggingface::model_config;
using huggingface::model_folder;

std::optional<weight_type> weight_type_of(std::string_view safetensors_type) {
  for (const weight_type type : {weight_type::f32, weight_type::f16, weight_type::bf16}) {
    if (safetensors_type == kernels::name_of(type)) return type;
  }
  return std::nullopt;
}

/// Rows in the order of llama files, where rotated pairs are adjacent: row 2i of a head is the folder's row i, row 2i +
/// 1 is its row i + half.
row_source with_adjacent_pairs(row_source theirs, std::uint32_t head_dim) {
  return [theirs = std::move(theirs), head_dim](std::uint64_t row, float* out) {
    const std::uint64_t in_head = row % head_dim;
    theirs(row - in_head + in_head % 2 * (head_dim / 2) + in_head / 2, out);
  };
}

/// Converts norms that multiply by one plus their weight to norms that multiply by their weight.
row_source plus_one(row_source theirs) {
  return [theirs = std::move(theirs)](std::uint64_t row, float* out) {
    theirs(row, out);
    *out += 1;
  };
}

/// The rows of `rows` whose last ones are value heads, which are adjacent in folders if they read one key head.
row_source with_head_rows(row_source theirs, const architecture::delta_shape& d, std::uint64_t rows) {
  const std::uint64_t of_head = rows == d.value_heads ? 1 : d.head_dim, first = rows - d.value_heads * of_head;
  return [theirs = std::move(theirs), d, of_head, first](std::uint64_t row, float* out) {
    if (row < first) return theirs(row, out);
    const auto head = static_cast<std::uint32_t>((row - first) / of_head);
    theirs(first + d.grouped_place(head) * of_head + (row - first) % of_head, out);
  };
}

/// The same for columns.
row_source with_head_columns(row_source theirs, const architecture::delta_shape& d) {
  return [theirs = std::move(theirs), d](std::uint64_t row, float* out) {
    std::vector<float> in_their_order(d.values());
    theirs(row, in_their_order.data());
    for (std::uint32_t head = 0; head < d.value_heads; ++head)
      std::copy_n(in_their_order.data() + d.grouped_place(head) * d.head_dim, d.head_dim, out + head * d.head_dim);
  };
}

row_source negated_exponential(row_source theirs) {
  return [theirs = std::move(theirs)](std::uint64_t row, float* out) {
    theirs(row, out);
    *out = static_cast<float>(-portable_exp(double{*out}));
  };
}

constexpr std::uint64_t mxfp4_columns = 32;

/// Converts numbers that are adjacent in a byte, as in Hugging Face folders, to numbers half a block apart, as in GGUF.
void repack_mxfp4(const std::byte* from, std::byte* to) {
  constexpr std::size_t half = mxfp4_columns / 2;
  const auto step = [from](std::size_t i) {
    const auto both = std::to_integer<unsigned>(from[i / 2]);
    return i % 2 == 0 ? both & 15 : both >> 4;
  };
  for (std::size_t i = 0; i < half; ++i) to[i] = static_cast<std::byte>(step(i) | step(i + half) << 4);
}

/// The name of a tensor in a model with text only; nothing if it is not part of that.
std::optional<std::string> known_name(const std::string& theirs, const model_config& config) {
  auto name = config.is_wrapped ? huggingface::text_name(theirs) : std::optional(theirs);
  constexpr std::string_view wrapped = "model.mtp.";
  if (name && name->starts_with(wrapped)) name->erase(0, wrapped.find('.') + 1);
  return name;
}

/// The number of MTP layers in the folder. Its config.json need not say it, and often speaks of layers that were left
/// out.
std::uint32_t count_mtp_layers(const model_folder& from, const model_config& config) {
  std::set<std::string, std::less<>> layers;
  constexpr std::string_view before = "mtp.layers.";
  for (const auto& [theirs, place] : from.tensors()) {
    const auto name = known_name(theirs, config);
    if (name && name->starts_with(before))
      layers.insert(name->substr(before.size(), name->find('.', before.size()) - before.size()));
  }
  return static_cast<std::uint32_t>(layers.size());
}

/// Takes tensors from a folder one by one, checks them, and remembers which were used.
class tensor_mover {
 public:
  tensor_mover(const model_folder& from, const model_config& config, const output_type& type,
               kernels::worker_team& team, gguf::gguf_writer& to)
      : from_(from), shape_(config.shape), type_(type), team_(team), to_(to) {
    for (const auto& [name, place] : from.tensors()) {
      const auto known_as = known_name(name, config);
      if (!known_as || is_extra(*known_as)) {
        ++left_out_;
      } else if (!tensors_.emplace(*known_as, named_place{name, place}).second) {
        twice_.push_back({name, place});
      }
    }
  }

  result<void> move(const tensor& t) {
    switch (t.form) {
      case hub_form::same:
      case hub_form::rotated:
      case hub_form::norm:
        return move_rows(t);
      case hub_form::one_row:
        return row(t);
      case hub_form::each:
        return experts(t);
      case hub_form::stacked:
        return slices(t);
      case hub_form::interleaved:
        if (t.columns == 0) return expert_biases(t);
        return has(t.hub) ? transposed_experts(t) : packed_experts(t);
      case hub_form::latent_keys:
        return latent_keys(t);
      case hub_form::latent_values:
        return latent_values(t);
      case hub_form::value_heads:
      case hub_form::value_head_columns:
      case hub_form::convolution:
      case hub_form::decay:
        return value_heads(t);
      case hub_form::key_groups:
        return key_groups(t);
    }
    return {};
  }

  [[nodiscard]] bool has(const std::string& theirs) const { return tensors_.contains(theirs); }
  /// The number of tensors of parts other than text, and of layers that predict further tokens and are not read.
  [[nodiscard]] std::size_t left_out() const { return left_out_; }

  [[nodiscard]] result<void> check_all_used() const {
    for (const auto& [name, known] : tensors_) {
      // The first can be computed; the second repeats the embedding.
      const bool redundant = name.ends_with(".rotary_emb.inv_freq") || (shape_.tied_head && name == "lm_head.weight");
      if (redundant || used_.contains(name)) continue;
      return without_place(known);
    }
    if (!twice_.empty()) return without_place(twice_.front());
    return {};
  }

 private:
  /// Whether the tensor belongs to the layers that predict further tokens.
  [[nodiscard]] bool is_extra(const std::string& theirs) const {
    if (shape_.delta && theirs.starts_with("mtp.")) return !shape_.has_mtp();
    constexpr std::string_view before = "model.layers.";
    return theirs.starts_with(before) && shape_.is_extra("blk." + theirs.substr(before.size()));
  }

  /// Moves one matrix per expert, whose number replaces the "*" of the name, as one tensor.
  result<void> experts(const tensor& t) {
    const std::uint64_t shape[] = {t.rows, t.columns}, rows = t.rows;
    std::vector<row_source> sources;
    std::vector<model_folder::place> places;
    for (std::uint64_t e = 0; e < t.count; ++e) {
      const std::string theirs = std::string(t.hub).replace(t.hub.find('*'), 1, std::to_string(e));
      REDLINE_TRY_ASSIGN(const model_folder::place from, find(theirs, shape));
      REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, theirs));
      sources.push_back(stored_rows(stored, from.tensor->bytes.data(), t.columns));
      places.push_back(from);
    }
    const auto row_of = [sources = std::move(sources), rows](std::uint64_t row, float* out) {
      sources[row / rows](row % rows, out);
    };
    add(t, row_of, [places = std::move(places)] {
      for (const model_folder::place& from : places) from.file->drop_from_memory(*from.tensor);
    });
    return {};
  }

  /// Moves an equal part of the rows of each expert's matrix.
  result<void> slices(const tensor& t) {
    const std::uint64_t their_rows = t.rows * t.parts, first = t.rows * t.part, rows = t.rows;
    const std::uint64_t shape[] = {t.count, their_rows, t.columns};
    REDLINE_TRY_ASSIGN(const model_folder::place from, find(t.hub, shape));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, t.hub));
    add(t, [source = stored_rows(stored, from.tensor->bytes.data(), t.columns), their_rows, first, rows](
               std::uint64_t row, float* out) { source(row / rows * their_rows + first + row % rows, out); });
    return {};
  }

  /// Moves a matrix of one row as a vector.
  result<void> row(const tensor& t) {
    const std::uint64_t shape[] = {1, t.rows};
    REDLINE_TRY_ASSIGN(const model_folder::place from, find(t.hub, shape));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, t.hub));
    add(t, stored_rows(stored, from.tensor->bytes.data(), 1));
    return {};
  }

  /// Moves MXFP4 experts, "_blocks" and "_scales" of [experts, rows * parts, ...]: every `parts`-th row from `part` on.
  /// They stay MXFP4, whatever the type of the other tensors, so nothing is rounded again.
  result<void> packed_experts(const tensor& t) {
    const std::uint64_t blocks = t.columns / mxfp4_columns, all = t.rows * t.count, step = t.parts, first = t.part;
    if (t.columns % mxfp4_columns != 0) {
      return failure{errc::file_malformed, from_.path() + ": tensor '" + t.hub + "_blocks': expected rows of whole " +
                                               "blocks of " + std::to_string(mxfp4_columns) + ", found " +
                                               std::to_string(t.columns) + " columns"};
    }
    const std::uint64_t shape[] = {t.count, t.rows * step, blocks, mxfp4_columns / 2};
    REDLINE_TRY_ASSIGN(const model_folder::place steps, find(t.hub + "_blocks", shape));
    REDLINE_TRY_ASSIGN(const model_folder::place scales, find(t.hub + "_scales", std::span(shape).first(3)));
    for (const auto& [place, suffix] : {std::pair(steps, "_blocks"), {scales, "_scales"}}) {
      if (place.tensor->type == "U8") continue;
      return failure{errc::unsupported_format, place.file->path() + ": " + quote_bytes(t.hub + suffix) +
                                                   ".dtype: expected U8, found " + std::string(place.tensor->type)};
    }
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
    to_.add_tensor(t.gguf, gguf::tensor_type::mxfp4, t.dimensions(), all * blocks * (1 + mxfp4_columns / 2), pack);
    return {};
  }

  /// Moves experts that are not quantized, stored as [experts, columns, rows * parts].
  result<void> transposed_experts(const tensor& t) {
    const std::uint64_t step = t.parts, first = t.part, rows = t.rows, columns = t.columns, their_columns = rows * step;
    const std::uint64_t shape[] = {t.count, columns, their_columns};
    REDLINE_TRY_ASSIGN(const model_folder::place from, find(t.hub, shape));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, t.hub));
    add(t, [number = stored_rows(stored, from.tensor->bytes.data(), 1), their_columns, first, step, rows, columns](
               std::uint64_t row, float* out) {
      const std::uint64_t at = row / rows * columns * their_columns + first + row % rows * step;
      for (std::uint64_t c = 0; c < columns; ++c) number(at + c * their_columns, out + c);
    });
    return {};
  }

  /// Moves a bias per expert, stored as [experts, rows * parts].
  result<void> expert_biases(const tensor& t) {
    const std::uint64_t step = t.parts, first = t.part, length = t.rows, their_length = length * step;
    const std::uint64_t shape[] = {t.count, their_length};
    REDLINE_TRY_ASSIGN(const model_folder::place from, find(t.hub, shape));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, t.hub));
    add(t,
        [number = stored_rows(stored, from.tensor->bytes.data(), 1), their_length, first, step, length](
            std::uint64_t row, float* out) { number(row / length * their_length + first + row % length * step, out); });
    return {};
  }

  /// In each head the rows that compute its keys from a latent vector precede those that compute its values.
  result<model_folder::place> find_latents(const tensor& t) {
    const architecture::latent_shape& l = *shape_.latent;
    const std::uint64_t shape[] = {shape_.heads * (std::uint64_t{l.plain_dim} + l.value_dim), l.rank};
    return find(t.hub, shape);
  }

  /// Moves the key rows, transposed: [rank, plain] for each head.
  result<void> latent_keys(const tensor& t) {
    REDLINE_TRY_ASSIGN(const model_folder::place from, find_latents(t));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, t.hub));
    const std::uint64_t rank = t.rows, plain = t.columns, of_head = plain + shape_.latent->value_dim;
    add(t, [number = stored_rows(stored, from.tensor->bytes.data(), 1), rank, plain, of_head](std::uint64_t row,
                                                                                              float* out) {
      const std::uint64_t first = row / rank * of_head * rank + row % rank;
      for (std::uint64_t k = 0; k < plain; ++k) number(first + k * rank, out + k);
    });
    return {};
  }

  result<void> latent_values(const tensor& t) {
    REDLINE_TRY_ASSIGN(const model_folder::place from, find_latents(t));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, t.hub));
    const std::uint64_t values = t.rows, plain = shape_.latent->plain_dim, of_head = plain + values;
    add(t, [source = stored_rows(stored, from.tensor->bytes.data(), t.columns), values, plain, of_head](
               std::uint64_t row, float* out) { source(row / values * of_head + plain + row % values, out); });
    return {};
  }

  /// Moves a tensor whose last rows, or whose columns, are value heads of recurrent layers, or a convolution.
  result<void> value_heads(const tensor& t) {
    std::vector<std::uint64_t> shape{t.rows};
    if (t.form == hub_form::convolution) shape.push_back(1);
    if (t.columns != 0) shape.push_back(t.columns);
    REDLINE_TRY_ASSIGN(const model_folder::place from, find(t.hub, shape));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, t.hub));
    row_source source = stored_rows(stored, from.tensor->bytes.data(), std::max<std::uint64_t>(t.columns, 1));
    if (t.form == hub_form::value_head_columns) {
      source = with_head_columns(std::move(source), *shape_.delta);
    } else if (shape_.delta) {
      source = with_head_rows(std::move(source), *shape_.delta, t.rows);
    }
    if (t.form == hub_form::decay) source = negated_exponential(std::move(source));
    add(t, std::move(source), [from] { from.file->drop_from_memory(*from.tensor); });
    return {};
  }

  /// Moves the inputs, or the gates, of a matrix that has all rows of a key head together.
  result<void> key_groups(const tensor& t) {
    const architecture::delta_shape& d = *shape_.delta;
    const std::uint64_t shape[] = {std::uint64_t{d.channels()} + d.values(), t.columns};
    REDLINE_TRY_ASSIGN(const model_folder::place from, find(t.hub, shape));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, t.hub));
    const std::uint64_t first = t.is == architecture::role::delta_gate ? d.channels() : 0;
    add(t, [source = stored_rows(stored, from.tensor->bytes.data(), t.columns), d, first](
               std::uint64_t row, float* out) { source(d.packed_row(first + row), out); });
    return {};
  }

  /// Moves the rows of a tensor; a vector counts as rows of one number.
  result<void> move_rows(const tensor& t) {
    const std::vector<std::uint64_t> dimensions = t.dimensions();
    const std::vector<std::uint64_t> shape(dimensions.rbegin(), dimensions.rend());
    REDLINE_TRY_ASSIGN(const model_folder::place from, find(t.hub, shape));
    REDLINE_TRY_ASSIGN(const weight_type stored, stored_type(from, t.hub));
    row_source source = stored_rows(stored, from.tensor->bytes.data(), std::max<std::uint64_t>(t.columns, 1));
    if (t.form == hub_form::rotated && shape_.kind->hub_pairs_apart) {
      source = with_adjacent_pairs(std::move(source), shape_.head_dim);
    }
    if (t.form == hub_form::norm && shape_.kind->hub_norms_less_one) source = plus_one(std::move(source));
    add(t, std::move(source), [from] { from.file->drop_from_memory(*from.tensor); });
    return {};
  }

  /// Adds a tensor. Vectors are floats, whatever the type of the matrices.
  void add(
      const tensor& t, row_source rows, std::function<void()> then = [] {}) {
    const std::uint64_t columns = std::max<std::uint64_t>(t.columns, 1), all = t.rows * t.count;
    const weight_type wanted =
        t.columns == 0 ? weight_type::f32 : type_for(type_, {t.gguf, columns, shape_.layers, shape_.tied_head});
    to_.add_tensor(t.gguf, to_tensor_type(wanted), t.dimensions(), all * kernels::row_bytes(wanted, columns),
                   followed_by(stream_rows(team_, wanted, all, columns, std::move(rows)), std::move(then)));
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
      const std::string part = left_out() == 0 ? "" : " in the text part of the model";
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
    return {errc::unsupported_format, one.at.file->path() + ": " + quote_bytes(one.name) + " does not belong in a " +
                                          std::string(shape_.family_name()) + " model"};
  }

  const model_folder& from_;
  std::map<std::string, named_place, std::less<>> tensors_;  // by their name in a model with text only
  std::vector<named_place> twice_;                           // their name is already in use
  std::size_t left_out_ = 0;
  const architecture::model_shape& shape_;
  const output_type& type_;
  kernels::worker_team& team_;
  gguf::gguf_writer& to_;
  std::set<std::string, std::less<>> used_;
};

result<void> move_tensors(const architecture::model_shape& s, tensor_mover& mover) {
  for (const tensor& t : outer_tensors(s)) REDLINE_TRY(mover.move(t));
  for (std::uint32_t layer = 0; layer < s.read_layers(); ++layer) {
    for (const tensor& t : layer_tensors(s, layer)) REDLINE_TRY(mover.move(t));
  }
  return mover.check_all_used();
}

void put_rope(const model_config& config, gguf::gguf_writer& to) {
  if (config.linear_factor != 1) {
    const std::string prefix = std::string(config.shape.family_name()) + ".rope.scaling.";
    to.put_string(prefix + "type", "linear");
    to.put_f32(prefix + "factor", static_cast<float>(config.linear_factor));
  }
  if (config.yarn) {
    const huggingface::yarn_scaling& yarn = *config.yarn;
    const std::string prefix = std::string(config.shape.family_name()) + ".rope.scaling.";
    to.put_string(prefix + "type", "yarn");
    to.put_f32(prefix + "factor", static_cast<float>(yarn.factor));
    to.put_u32(prefix + "original_context_length", static_cast<std::uint32_t>(yarn.original_context));
    to.put_f32(prefix + "yarn_beta_fast", static_cast<float>(yarn.turns_kept));
    to.put_f32(prefix + "yarn_beta_slow", static_cast<float>(yarn.turns_slowed));
    if (yarn.log_multiplier != 0) to.put_f32(prefix + "yarn_log_multiplier", static_cast<float>(yarn.log_multiplier));
    // Readers of GGUF multiply it with the factor that follows from the scaling factor.
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

/// The folder's own name, however the path is written.
std::string name_of(const std::string& folder) {
  std::error_code unreadable;  // such a folder could not have been opened
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
  REDLINE_TRY_ASSIGN(model_config config, huggingface::read_model_config(document));
  gguf::gguf_writer out;
  if (!config.shape.kind->mtp.empty()) config.shape.extra_layers = count_mtp_layers(from, config);
  architecture::put_shape(config.shape, out);
  out.put_string("general.name", name_of(folder));
  put_type(type, out);
  put_rope(config, out);
  // Before the tokenizer, so that the vocabulary's size is known to be that of an existing tensor.
  tensor_mover mover(from, config, type, team, out);
  config.shape.qkv_biases = config.shape.kind->qkv_biases || mover.has("model.layers.0.self_attn.q_proj.bias");
  REDLINE_TRY(move_tensors(config.shape, mover));
  REDLINE_TRY(move_tokenizer(from, document, config.shape.vocabulary, out));
  REDLINE_TRY(out.write(path, progress));
  return mover.left_out();
}

}  // namespace redline::convert
