#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cli/flags/command_line.hpp"
#include "runtime/base/result.hpp"
#include "runtime/draft/draft_options.hpp"
#include "runtime/kv/eviction.hpp"

namespace redline::actors {
struct copy_options;
}

namespace redline::actors::cli {

/// How to make drafts, and for --method copy how to make programs.
struct method_flags {
  method_flags();

  std::string method = "auto";
  std::string copy_trust = "forced";  // for method copy, like the next four
  std::string copy_spans = "lines";
  bool copy_anchors = false;
  float copy_confidence_min;
  float copy_probability_min;
  draft::draft_options options;
};
/// with_copy: adds --method copy, which asks for a program over the file instead of the file.
void add_method_flags(command c, method_flags& flags, bool with_copy = false);
/// The same flags without --method.
void add_drafting_flags(command c, method_flags& flags);
/// The options of --method copy.
copy_options to_copy_options(const method_flags& flags);
/// Fails if the method needs a draft model and there is none.
result<draft::draft_options> to_draft_options(const method_flags& flags, bool has_draft_model);
/// The options as flags of `redline serve`.
std::vector<std::string> words_of(const draft::draft_options& options);
/// The names of all methods.
std::vector<std::string> method_names();

/// What to do at the end of the window.
struct eviction_flags {
  std::string policy = "off";
  std::optional<std::uint32_t> n_keep, n_discard;
  std::uint32_t n_ctx = 0;
};
void add_eviction_flags(command c, eviction_flags& flags);
kv::eviction_options to_eviction_options(const eviction_flags& flags);

}  // namespace redline::actors::cli
