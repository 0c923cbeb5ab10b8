#include "actors/cli/flags/generation_flags.hpp"

#include "actors/serving/constrained_output.hpp"

namespace redline::actors::cli {

method_flags::method_flags()
    : copy_confidence_min(copy_options{}.confidence_min), copy_probability_min(copy_options{}.probability_min) {}

void add_method_flags(command c, method_flags& flags, bool with_copy) {
  std::vector<std::string> names{"auto", "regular", "lookup", "assisted", "blazedit", "prediction", "mtp"};
  if (with_copy) {
    names.emplace_back("copy");
    c.add("--copy-trust", flags.copy_trust,
          "copy: how much of a span to copy: all (forced), as far as the model would write the same (verified), or all "
          "if its anchors match or the model is confident of its numbers, otherwise as far as the model finds it "
          "probable (auto)")
        .one_of({"forced", "verified", "auto"})
        .group("Drafting");
    c.add("--copy-spans", flags.copy_spans,
          "copy: whether copied spans are counted in lines, in tokens, or in either as the model chooses")
        .one_of({"lines", "tokens", "both"})
        .group("Drafting");
    c.add("--copy-confidence-min", flags.copy_confidence_min,
          "copy: without anchors, auto forces a span if the model gives its numbers at least this probability")
        .range(0.0, 1.0)
        .group("Drafting");
    c.add("--copy-probability-min", flags.copy_probability_min,
          "copy: auto ends any other span at a token below this probability")
        .range(0.0, 1.0)
        .group("Drafting");
    c.add_flag("--copy-anchors", flags.copy_anchors,
               "copy: each span of lines also quotes the beginning of its first and last line")
        .group("Drafting");
  }
  c.add("--method", flags.method,
        std::string(
            "How drafts are made; every method gives the same output bytes. auto learns during each answer which "
            "source of drafts saves time") +
            (with_copy ? ". With copy, the model writes what to copy and what is new" : ""))
      .one_of(names)
      .group("Drafting");
  add_drafting_flags(c, flags);
}

void add_drafting_flags(command c, method_flags& flags) {
  c.add("--max-matching-ngram-size", flags.options.max_matching_ngram_size,
        "lookup, blazedit, prediction, auto: maximum number of tokens at the end of the text to search for earlier in "
        "it")
      .range(1, 64)
      .group("Drafting");
  c.add("--lookup-tokens", flags.options.lookup_tokens_max,
        "lookup, prediction, auto: maximum number of tokens of a draft")
      .range(1, 512)
      .group("Drafting");
  c.add("--assisted-tokens", flags.options.assisted_tokens_max, "assisted: maximum number of tokens of a draft")
      .range(1, 512)
      .group("Drafting");
  c.add("--confidence-min", flags.options.confidence_min, "assisted: the draft stops at a token below this probability")
      .range(0.0, 1.0)
      .group("Drafting");
  c.add("--micro-draft-tokens", flags.options.micro_draft_tokens,
        "blazedit: maximum number of tokens looked up for one pass of the draft model")
      .range(1, 512)
      .group("Drafting");
  c.add("--max-num-run", flags.options.max_num_run,
        "blazedit: maximum number of draft model passes per target model pass")
      .range(1, 64)
      .group("Drafting");
}

void add_eviction_flags(command c, eviction_flags& flags) {
  c.add(
       "--eviction", flags.policy,
       "What happens when the window is full: off ends the answer; the others drop the oldest tokens and recompute the "
       "rest (reevaluate), rotate its keys in place (shift) or only record that they moved (lazy)")
      .one_of({"off", "reevaluate", "shift", "lazy"})
      .group("Window");
  c.add("--n-keep", flags.n_keep,
        "How many of the first tokens always stay; default: the prompt, except the older turns of a conversation")
      .group("Window");
  c.add("--n-discard", flags.n_discard,
        "How many tokens are dropped at a time; default: half of those that may be dropped, up to the end of a line")
      .range(1, 1 << 24)
      .group("Window");
  c.add("--n-ctx", flags.n_ctx, "Number of tokens of the window; 0 means the context").group("Window");
}

kv::eviction_options to_eviction_options(const eviction_flags& flags) {
  return {.policy = kv::parse_eviction_policy(flags.policy).value_or(kv::eviction_policy::off),
          .n_keep = flags.n_keep,
          .n_discard = flags.n_discard,
          .n_ctx = flags.n_ctx};
}

copy_options to_copy_options(const method_flags& flags) {
  return {.trust = parse_copy_trust(flags.copy_trust).value_or(copy_trust::forced),
          .line_spans = flags.copy_spans != "tokens",
          .token_spans = flags.copy_spans != "lines",
          .anchors = flags.copy_anchors,
          .confidence_min = flags.copy_confidence_min,
          .probability_min = flags.copy_probability_min};
}

result<draft::draft_options> to_draft_options(const method_flags& flags, bool has_draft_model) {
  draft::draft_options options = flags.options;
  const std::string name = flags.method == "copy" ? "lookup" : flags.method;
  if ((name == "assisted" || name == "blazedit") && !has_draft_model) {
    return failure{errc::invalid_argument, "method " + name + " requires a draft model (--draft)"};
  }
  for (std::uint8_t i = 0; i < static_cast<std::uint8_t>(draft::method::last_); ++i) {
    if (name_of(static_cast<draft::method>(i)) == name) options.how = static_cast<draft::method>(i);
  }
  return options;
}

std::vector<std::string> words_of(const draft::draft_options& options) {
  return {"--method",
          std::string(name_of(options.how)),
          "--max-matching-ngram-size",
          std::to_string(options.max_matching_ngram_size),
          "--lookup-tokens",
          std::to_string(options.lookup_tokens_max),
          "--assisted-tokens",
          std::to_string(options.assisted_tokens_max),
          "--confidence-min",
          std::to_string(options.confidence_min),
          "--micro-draft-tokens",
          std::to_string(options.micro_draft_tokens),
          "--max-num-run",
          std::to_string(options.max_num_run)};
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (std::uint8_t i = 0; i < static_cast<std::uint8_t>(draft::method::last_); ++i) {
    names.emplace_back(name_of(static_cast<draft::method>(i)));
  }
  return names;
}

}  // namespace redline::actors::cli
