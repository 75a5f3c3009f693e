// Lets algorithms train against PyTorch's DistributedDataParallel and against workers that do not
// communicate, in turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace starling::tool {

inline constexpr std::string_view kDdp = "ddp";
inline constexpr std::string_view kAlone = "alone";

struct TrainingPlan {
  std::size_t workers = 4;
  std::vector<std::string> models = {"mlp", "cnn"};
  std::vector<std::string> algorithms = {"all-reduce", "dadam", "wagma", "starling"};
  // Timed ones of each run; none: what takes about four seconds on two cores.
  std::optional<std::uint64_t> steps = std::nullopt;
  int rounds = 3;
};

// One model with one algorithm, `ddp` or `alone`.
struct TrainingRow {
  std::string model;
  std::string algorithm;
  std::uint64_t steps = 0;
  std::vector<double> samples_per_second;  // of all workers together, by round
};

// Of samples per second, by round, so that what the machine does meanwhile strikes both. Requires:
// as many rounds.
double ratio(const TrainingRow& row, const TrainingRow& other);
double median(std::vector<double> values);

// In each round all of one model follow each other, in the order of the rows or, every other round,
// backwards. Rows: for each model ddp, alone, then the algorithms. `progress` is told what begins.
// Throws as run_program() does.
std::vector<TrainingRow> hold_training_contest(
    const TrainingPlan& plan, const std::function<void(const std::string&)>& progress);

}  // namespace starling::tool
