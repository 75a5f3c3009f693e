// Learning rates over the course of training, as factors of the optimizer's own. They are tied to
// the samples that all workers together have seen, so that they mean the same with any number of
// workers and any batch size.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

namespace starling::train {

// The factor after so many samples.
using LearningRate = std::function<double(double samples)>;

LearningRate constant_rate();
// Linear from `first` to 1, then a half cosine down to `last` at `total`, and `last` from there on.
LearningRate warmup_cosine(double warmup, double total, double first = 0.01, double last = 0);
// Linear from `first` to 1, then sqrt(warmup / samples).
LearningRate inverse_square_root(double warmup, double first = 0.01);
// Multiplied by `factor` at each of `at`, which rise.
LearningRate step_rate(std::vector<double> at, double factor = 0.1);

// As users type it: "constant", "cosine[:WARMUP]", "sqrt:WARMUP", "step:AT,AT,…[:FACTOR]", samples
// as numbers, or as parts of `total` in per cent ("5%"). Throws Error{Input}.
LearningRate parse_learning_rate(std::string_view text, double total);

}  // namespace starling::train
