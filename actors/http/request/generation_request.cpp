#include "actors/http/request/generation_request.hpp"

namespace redline::api {

draft::draft_options speculation_request::over(draft::draft_options defaults) const {
  if (method) defaults.how = *method;
  if (draft_tokens_max) defaults.lookup_tokens_max = defaults.assisted_tokens_max = *draft_tokens_max;
  if (confidence_min) defaults.confidence_min = *confidence_min;
  if (micro_draft_tokens) defaults.micro_draft_tokens = *micro_draft_tokens;
  if (max_num_run) defaults.max_num_run = *max_num_run;
  if (max_matching_ngram_size) defaults.max_matching_ngram_size = *max_matching_ngram_size;
  return defaults;
}

kv::eviction_options eviction_request::over(kv::eviction_options defaults) const {
  if (policy) defaults.policy = *policy;
  if (n_keep) defaults.n_keep = n_keep;
  if (n_discard) defaults.n_discard = n_discard;
  if (n_ctx) defaults.n_ctx = *n_ctx;
  return defaults;
}

draft::draft_options generation_request::drafting(draft::draft_options defaults) const {
  if (prediction) defaults.how = draft::method::automatic;
  return speculation.over(defaults);
}

}  // namespace redline::api
