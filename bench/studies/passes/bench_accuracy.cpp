// redline bench accuracy: how far a model's logits are from those of the file that it was made from, and how often it
// would choose another token.

#include "bench/studies/passes/bench_accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/progress_line.hpp"
#include "bench/studies/common/json_file.hpp"
#include "runtime/kv/page_table.hpp"
#include "runtime/model/numerics.hpp"
#include "runtime/model/transformer.hpp"
#include "runtime/text/tokenizer.hpp"

namespace redline::studies {
namespace {

/// Rows of a pass, few enough that the logits of a large vocabulary need little memory.
constexpr std::uint32_t chunk_rows = 64;

/// The logits of every token of the prompts, one prompt after the other, as a sequence of pieces.
class reader {
 public:
  static result<std::unique_ptr<reader>> open(const std::string& path, std::string_view numerics, model::kv_type kv,
                                              std::uint32_t tokens_max, kernels::worker_team& team) {
    REDLINE_TRY_ASSIGN(const auto file, gguf::gguf_file::open(path));
    REDLINE_TRY_ASSIGN(const auto wanted, model::parse_numerics(numerics));
    REDLINE_TRY_ASSIGN(const auto* chosen, model::table_for(*file, *kernels::process_table().table, wanted, kv));
    const kernels::kernel_table& table = *chosen;
    REDLINE_TRY_ASSIGN(auto weights, model::load_weights(*file, table, team));
    const std::uint32_t pages = (tokens_max + kv::page_tokens - 1) / kv::page_tokens;
    REDLINE_TRY_ASSIGN(auto made, model::transformer::create(std::move(weights), table, team,
                                                             {.pages_count = pages, .kv = kv, .rows_max = chunk_rows}));
    return std::unique_ptr<reader>(new reader(std::move(made), file->size_bytes(), model::name_of_products(table)));
  }

  [[nodiscard]] const architecture::model_shape& config() const { return model_->config(); }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
  [[nodiscard]] const std::string& products() const { return products_; }

  /// Reads tokens [first, first + chunk.size()) of a prompt, whose earlier tokens have been read.
  std::span<const float> read(std::span<const token> chunk, std::uint32_t first) {
    const kv::piece piece{0, first + static_cast<std::uint32_t>(chunk.size()), 0};
    const model::run r{.tokens = chunk, .first_position = static_cast<position>(first), .table = {&piece, 1}};
    return model_->forward({&r, 1});
  }

 private:
  reader(std::unique_ptr<model::transformer> m, std::uint64_t bytes, std::string products)
      : model_(std::move(m)), file_bytes_(bytes), products_(std::move(products)) {}

  std::unique_ptr<model::transformer> model_;
  std::uint64_t file_bytes_;
  std::string products_;
};

/// The logarithm of the sum of a row's exponentials.
double log_sum(std::span<const float> row) {
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float logit : row) sum += std::exp(double{logit} - most);
  return most + std::log(sum);
}

/// How one model's logits differ from the reference's.
struct deviation {
  std::uint64_t positions = 0;
  std::uint64_t agreeing = 0;  // positions where both choose the same token
  std::uint64_t logits = 0;
  double largest = 0;
  double squares = 0;
  double divergence = 0;  // summed Kullback-Leibler divergence of the found distributions from the reference's
  std::uint64_t foretold = 0;
  double surprise = 0;            // the surprise at the prompts' next tokens, in nats
  double reference_surprise = 0;  // the same with the reference's logits

  /// `next` is the token that follows in the prompt, if there is one.
  void add(std::span<const float> wanted, std::span<const float> found, std::optional<token> next) {
    ++positions;
    const double wanted_sum = log_sum(wanted), found_sum = log_sum(found);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double log_wanted = double{wanted[i]} - wanted_sum;
      divergence += std::exp(log_wanted) * (log_wanted - (double{found[i]} - found_sum));
    }
    if (next) {
      ++foretold;
      surprise += found_sum - double{found[static_cast<std::size_t>(*next)]};
      reference_surprise += wanted_sum - double{wanted[static_cast<std::size_t>(*next)]};
    }
    const auto best = [](std::span<const float> row) { return std::max_element(row.begin(), row.end()) - row.begin(); };
    if (best(wanted) == best(found)) ++agreeing;
    logits += wanted.size();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double error = std::fabs(double{wanted[i]} - double{found[i]});
      largest = std::max(largest, error);
      squares += error * error;
    }
  }
  [[nodiscard]] double rms() const {
    return std::sqrt(squares / static_cast<double>(std::max<std::uint64_t>(logits, 1)));
  }
  [[nodiscard]] double mean_divergence() const {
    return divergence / static_cast<double>(std::max<std::uint64_t>(positions, 1));
  }
  [[nodiscard]] double perplexity(double total) const {
    return std::exp(total / static_cast<double>(std::max<std::uint64_t>(foretold, 1)));
  }
  [[nodiscard]] double agreement() const {
    return static_cast<double>(agreeing) / static_cast<double>(std::max<std::uint64_t>(positions, 1));
  }
};

struct comparison {
  std::string path;
  std::string numerics;
  std::uint64_t file_bytes = 0;
  deviation from_reference;
};

using prompt_list = std::vector<std::vector<token>>;

/// The texts of {"cases": [{"text": "..."}, ...]}, with control tokens parsed, cut at the model's context.
result<prompt_list> read_prompts(const std::string& path, const text::tokenizer& tokenizer, std::uint32_t context) {
  REDLINE_TRY_ASSIGN(const std::string bytes, read_whole(path));
  const auto root = nlohmann::json::parse(bytes, nullptr, false);
  const failure no_prompts{errc::file_malformed, path + ": expected {\"cases\": [{\"text\": \"...\"}, ...]}"};
  if (!root.is_object() || !root.contains("cases") || !root["cases"].is_array()) return no_prompts;
  prompt_list prompts;
  for (const auto& item : root["cases"]) {
    if (!item.is_object() || !item.contains("text") || !item["text"].is_string()) return no_prompts;
    prompts.push_back(tokenizer.encode(item["text"].get<std::string>(), {.parse_special = true}));
    prompts.back().resize(std::min<std::size_t>(prompts.back().size(), context));
  }
  return prompts;
}

deviation compare(reader& reference, reader& tried, const prompt_list& prompts) {
  deviation d;
  const std::size_t vocabulary = reference.config().vocabulary;
  for (const auto& prompt : prompts) {
    for (std::uint32_t first = 0; first < prompt.size(); first += chunk_rows) {
      const auto chunk = std::span(prompt).subspan(first, std::min<std::size_t>(chunk_rows, prompt.size() - first));
      const auto wanted = reference.read(chunk, first);
      const auto found = tried.read(chunk, first);
      for (std::size_t at = 0; at < wanted.size(); at += vocabulary) {
        const std::size_t follows = first + at / vocabulary + 1;
        d.add(wanted.subspan(at, vocabulary), found.subspan(at, vocabulary),
              follows < prompt.size() ? std::optional(prompt[follows]) : std::nullopt);
      }
    }
  }
  return d;
}

result<std::vector<comparison>> compare_all(const accuracy_options& f, progress_line& line) {
  const auto& chosen = kernels::process_table();
  if (chosen.table == nullptr) return failure{errc::invalid_argument, chosen.problem};
  kernels::worker_team team(f.threads, true);
  REDLINE_TRY_ASSIGN(const auto file, gguf::gguf_file::open(f.reference));
  REDLINE_TRY_ASSIGN(const auto tokenizer, text::tokenizer::from_file(*file));
  REDLINE_TRY_ASSIGN(const auto config, architecture::read_shape(*file));
  REDLINE_TRY_ASSIGN(const prompt_list prompts, read_prompts(f.prompts, *tokenizer, config.context));
  REDLINE_TRY_ASSIGN(const auto reference,
                     reader::open(f.reference, "float", model::kv_type::f32, config.context, team));
  REDLINE_TRY_ASSIGN(const model::kv_type kv, parse_kv_type(f.kv));
  std::vector<comparison> all;
  for (const std::string& path : f.models) {
    for (const std::string& numerics : f.numerics) {
      line.show("reading prompts with " + path + ", " + numerics);
      REDLINE_TRY_ASSIGN(const auto tried, reader::open(path, numerics, kv, config.context, team));
      if (tried->config().vocabulary != config.vocabulary) {
        return failure{errc::unsupported_format, path + " has another vocabulary than " + f.reference};
      }
      all.push_back({path, tried->products(), tried->file_bytes(), compare(*reference, *tried, prompts)});
    }
  }
  return all;
}

void print(const std::vector<comparison>& all, const accuracy_options& f) {
  std::printf("%s keys and values, against %s with f32 ones\n", f.kv.c_str(), f.reference.c_str());
  std::printf("%8s %9s %10s %10s %10s %11s %10s  %s\n", "MB", "numerics", "largest", "RMS", "KL", "same token",
              "perplexity", "model");
  for (const comparison& c : all) {
    const deviation& d = c.from_reference;
    std::printf("%8.2f %9s %10.2g %10.2g %10.2g %10.2f%% %10.4f  %s\n", static_cast<double>(c.file_bytes) / 1e6,
                c.numerics.c_str(), d.largest, d.rms(), d.mean_divergence(), 100 * d.agreement(),
                d.perplexity(d.surprise), c.path.c_str());
  }
  if (all.empty()) return;
  const deviation& d = all.front().from_reference;
  std::printf("%llu positions; the reference's perplexity is %.4f\n", static_cast<unsigned long long>(d.positions),
              d.perplexity(d.reference_surprise));
}

nlohmann::ordered_json json_of(const std::vector<comparison>& all, const accuracy_options& f) {
  nlohmann::ordered_json out = {
      {"benchmark", "accuracy"}, {"reference", f.reference}, {"kv", f.kv}, {"models", nlohmann::ordered_json::array()}};
  for (const comparison& c : all) {
    const deviation& d = c.from_reference;
    out["models"].push_back({{"model", c.path},
                             {"numerics", c.numerics},
                             {"file_bytes", c.file_bytes},
                             {"largest_error", d.largest},
                             {"rms_error", d.rms()},
                             {"divergence", d.mean_divergence()},
                             {"perplexity", d.perplexity(d.surprise)},
                             {"reference_perplexity", d.perplexity(d.reference_surprise)},
                             {"same_token", d.agreement()},
                             {"positions", d.positions}});
  }
  return out;
}

}  // namespace

int run_accuracy(const accuracy_options& options) {
  progress_line line(options.json != "-");
  const auto all = compare_all(options, line);
  line.clear();
  if (!all) return report(all.error());
  if (options.json != "-") print(*all, options);
  const auto written = write_json(options.json, json_of(*all, options));
  return written ? 0 : report(written.error());
}

}  // namespace redline::studies
