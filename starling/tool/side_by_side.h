// `starling train images --algorithm A,B,C`: the same job once for each algorithm, one after the
// other, and what came of it in one table.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace starling::tool {

struct SeveralRuns {
  struct Run {
    std::string algorithm;
    std::vector<std::string> command;  // prints its summary as JSON
  };
  std::vector<Run> runs;
  bool json = false;
  bool empty() const { return runs.empty(); }
};

// Nothing if the command names one algorithm at most. With --out FOLDER each run has a folder of
// its own in it.
SeveralRuns several_runs(const std::vector<std::string>& command);

// `train` runs one of the commands, by its place, and returns its summary.
void train_side_by_side(const SeveralRuns& several,
                        const std::function<nlohmann::json(std::size_t run)>& train);

}  // namespace starling::tool
