#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/command.hpp"
#include "actors/cli/generation_flags.hpp"
#include "actors/cli/model_flags.hpp"
#include "actors/cli/stopwatch.hpp"
#include "bench/studies/load_plan.hpp"
#include "bench/studies/load_report.hpp"
#include "bench/studies/names.hpp"

// Every study with its options; commands.cpp has their flags and what they mean. A run prints its tables and returns
// the exit code. json: a file for the figures, "-" for standard output, empty for none.

namespace redline::studies {

struct forward_options {
  std::string model;
  std::vector<std::uint32_t> rows = {1, 2, 4, 8, 16, 32, 64, 128, 512};
  std::vector<std::uint32_t> contexts = {0};
  std::uint32_t threads = 0;
  std::string kv = "f16";
  std::uint32_t samples = 5;
  double seconds = 1.0;
  bool last_only = false;
  bool profile = false;
  std::string json;
};
int run_forward(const forward_options& options);

struct accuracy_options {
  std::string reference;
  std::vector<std::string> models;
  std::string prompts;
  std::string kv = "f32";
  std::uint32_t threads = 0;
  std::string json;
};
int run_accuracy(const accuracy_options& options);

struct edit_options {
  model_flags models;
  method_flags drafting;
  std::string edits;
  std::vector<std::string> methods;
  std::uint32_t limit = 0;
  std::uint32_t repeats = 1;
  std::uint32_t tokens_max = 0;
  bool replay = false;
  std::optional<double> replay_draft_accuracy;
  std::optional<double> prediction_right;
  std::vector<std::uint32_t> grid_runs;
  std::vector<std::uint32_t> grid_micro;
  std::vector<std::uint32_t> grid_ngram;
  std::string json;
  std::vector<std::string> merge;
};
int run_edit(const edit_options& options);

struct copy_study_options {
  model_flags models;
  std::vector<std::string> edits;
  std::uint32_t context_tokens = 1024;
  std::vector<std::uint32_t> runs{1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  std::vector<std::uint32_t> spans_min{2, 4, 8, 16, 32};
  std::vector<std::uint32_t> users{1, 8};
  std::uint32_t executed = 4;
  std::uint32_t answer_tokens_max = 700;
  std::uint32_t repeats = 1;
  std::uint32_t perturbed = 20;
  std::uint32_t trials = 5;
  std::uint32_t self_written = 0;
  double seconds = 0.3;
  clock_kind clock = clock_kind::wall;
  std::string json;
};
int run_copy(copy_study_options options);

struct pie_options {
  std::string model;
  std::string cases;
  std::vector<std::string> tasks{"insert", "delete", "multi", "related_multi_7"};
  std::uint32_t limit = 0;
  std::uint32_t window = 1536;
  std::vector<std::uint32_t> lengths;
  std::uint32_t inserted = 40;
  std::uint32_t exact_max = 4096;
  std::uint32_t samples = 5;
  std::uint32_t threads = 0;
  std::string kv = "f16";
  std::string json;
};
int run_pie(const pie_options& options);

struct evict_options {
  model_flags models;
  std::string text;
  std::uint32_t text_tokens = 8192;
  std::uint32_t window = 1024;
  std::uint32_t n_keep = 4;
  std::uint32_t tokens = 256;
  std::vector<std::uint32_t> n_discard{1, 16, 64};
  std::uint32_t reevaluations_max = 4;
  std::string json;
};
int run_evict(const evict_options& options);

struct prefix_options {
  model_flags models;
  std::uint32_t prefix_tokens = 2048;
  std::uint32_t own_tokens = 32;
  std::uint32_t answer_tokens = 8;
  std::uint32_t repeat = 5;
  std::string json;
};
int run_prefix(const prefix_options& options);

struct load_options {
  std::string server;
  std::string api_key;
  std::string model;
  std::string draft;
  std::string edits;
  std::vector<std::string> methods = {"auto", "regular"};
  std::vector<std::uint32_t> clients;
  std::vector<double> rates;
  load_mix mix;
  std::size_t edit_bytes_max = 0;
  std::size_t requests = 0;
  std::uint32_t repeats = 1;
  std::uint64_t seed = 1;
  latency_target target;
  std::vector<std::string> merge;
  std::string json;
};
int run_load(const load_options& options);

}  // namespace redline::studies
