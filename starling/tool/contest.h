// Runs the programs that all-reduce and time it (bench/rivals), in turns, and collects what they
// measured.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace starling::tool {

struct ContestPlan {
  std::vector<std::size_t> workers;
  std::vector<std::size_t> bytes;
  std::vector<std::string> contestants;  // "starling", "mpi", "gloo", "memory"
  bool is_private = false;
  int rounds = 5;
};

// One contestant with one number of workers and one size, all rounds together.
struct Measured {
  std::vector<double> seconds;  // one per repetition
  double cpu_seconds = 0;
  double elapsed_seconds = 0;

  // Requires: measured at all. 0 <= share <= 1.
  double percentile(double share) const;
  // Cores kept busy while it ran, by all its workers together.
  double cores() const { return cpu_seconds / elapsed_seconds; }
};

struct ContestCase {
  std::size_t workers = 0;
  std::size_t bytes = 0;
  std::map<std::string, Measured> by_contestant;
};

std::vector<std::string> contestants();

// Rounds follow each other, and within a round the contestants, so that whatever else the machine
// does strikes all of them. `progress` is told what begins. Throws Error{Input} if a program is not
// there, Error{Lost} with what it wrote if it fails.
std::vector<ContestCase> hold_contest(const ContestPlan& plan,
                                      const std::function<void(const std::string&)>& progress);

}  // namespace starling::tool
