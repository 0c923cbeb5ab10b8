#include "runtime/convert/quantize.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "runtime/convert/output_path.hpp"
#include "runtime/convert/row_stream.hpp"
#include "runtime/gguf/gguf_writer.hpp"

namespace redline::convert {
namespace {

/// Copies the metadata. A file with another tensor alignment keeps it.
result<void> copy_metadata(const gguf::gguf_file& from, const output_type& type, gguf::gguf_writer& to) {
  for (const auto& [key, value] : from.metadata()) {
    const bool is_split = key.starts_with("split.");  // describes the file that was read; the output is not split
    if (key != "general.file_type" && key != "general.quantization_version" && !is_split) to.put_value(key, value);
  }
  put_type(type, to);
  REDLINE_TRY_ASSIGN(const std::uint64_t alignment, from.get_unsigned("general.alignment", 32));
  to.align_to(alignment);
  return {};
}

/// The number of decoder layers, which mixtures depend on.
result<std::uint32_t> layers_of(const gguf::gguf_file& file) {
  REDLINE_TRY_ASSIGN(const std::string_view architecture, file.get_string("general.architecture"));
  const std::string key = std::string(architecture) + ".block_count";
  REDLINE_TRY_ASSIGN(const std::uint64_t layers, file.get_unsigned(key));
  if (layers > std::numeric_limits<std::uint32_t>::max()) {
    return failure{errc::file_malformed,
                   file.path() + ": metadata '" + key + "': expected a count, found " + std::to_string(layers)};
  }
  return static_cast<std::uint32_t>(layers);
}

constexpr std::size_t step_bytes = 4U << 20;  // between two calls of progress

gguf::payload_source copied(const gguf::tensor& t) {
  return [&t](const gguf::payload_sink& put) -> result<void> {
    for (std::size_t at = 0; at < t.bytes.size(); at += step_bytes) {
      REDLINE_TRY(put(t.bytes.subspan(at, std::min(step_bytes, t.bytes.size() - at))));
    }
    return {};
  };
}

class quantizer {
 public:
  quantizer(const gguf::gguf_file& from, const output_type& type, std::uint32_t layers, kernels::worker_team& team)
      : from_(from), type_(type), layers_(layers), team_(team) {}

  result<void> add(const gguf::tensor& t, gguf::gguf_writer& to) const {
    const auto stored = to_weight_type(t.type);
    if (!stored) {
      return failure{errc::unsupported_format, from_.path() + ": tensor '" + std::string(t.name) +
                                                   "': expected a type that Redline reads, found " +
                                                   gguf::name_of(t.type)};
    }
    const std::uint64_t columns = t.dimensions.front(), rows = t.element_count() / columns;
    const weight_type wanted = type_of(t);
    gguf::payload_source source =
        wanted == *stored ? copied(t)
                          : stream_rows(team_, wanted, rows, columns, stored_rows(*stored, t.bytes.data(), columns));
    to.add_tensor(t.name, to_tensor_type(wanted), t.dimensions, rows * kernels::row_bytes(wanted, columns),
                  followed_by(std::move(source), [&file = from_, &t] { file.drop_from_memory(t); }));
    return {};
  }

 private:
  [[nodiscard]] weight_type type_of(const gguf::tensor& t) const {
    if (t.dimensions.size() == 1) return weight_type::f32;
    const bool tied_head = from_.find_tensor("output.weight") == nullptr;
    return type_for(type_, {t.name, t.dimensions.front(), layers_, tied_head});
  }

  const gguf::gguf_file& from_;
  const output_type& type_;
  const std::uint32_t layers_;
  kernels::worker_team& team_;
};

}  // namespace

result<void> quantize(const gguf::gguf_file& from, const output_type& type, const std::string& path,
                      kernels::worker_team& team, const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  REDLINE_TRY(keep_sources(path, std::span(&from.path(), 1)));
  REDLINE_TRY_ASSIGN(const std::uint32_t layers, layers_of(from));
  gguf::gguf_writer out;
  REDLINE_TRY(copy_metadata(from, type, out));
  const quantizer each(from, type, layers, team);
  for (const gguf::tensor& t : from.tensors()) REDLINE_TRY(each.add(t, out));
  return out.write(path, progress);
}

}  // namespace redline::convert
