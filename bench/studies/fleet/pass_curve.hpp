#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/studies/common/names.hpp"
#include "runtime/base/result.hpp"
#include "runtime/cost/cost_model.hpp"

namespace redline::studies {

/// The measured times of a model's passes on a machine.
struct pass_curve {
  std::string name;  // names the machine and the model
  std::vector<cost::cost_sample> samples;
  cost::mixture_shape mixture;  // the model's experts
};

/// Parses a server's record of its machine (pass-costs-*.json in its cache folder), or the JSON of `redline bench
/// forward`.
result<pass_curve> parse_pass_curve(std::string_view json, const std::string& name);
result<pass_curve> read_pass_curve(const std::string& path);

/// Predicts the time of a pass of any size with the model that schedulers learn from their passes.
cost::cost_model fit_pass_curve(const pass_curve& curve);

}  // namespace redline::studies
