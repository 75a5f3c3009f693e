#include "starling/sim/cluster.h"

#include <algorithm>

#include "starling/base/error.h"
#include "starling/base/running.h"

namespace starling::sim {
namespace {

constexpr std::uint64_t kEventsPerProgress = 1 << 15;

}  // namespace

Cluster::Cluster(ClusterOptions options) : network_(options.network) {
  const comm::Arithmetic& arithmetic =
      options.payload == Payload::Real ? static_cast<const comm::Arithmetic&>(real_) : weightless_;
  if (options.payload == Payload::Weightless) {
    options.engine.chunk = 0;
  }
  for (std::uint32_t r = 0; r < network_.size(); ++r) {
    engines_.push_back(
        std::make_unique<comm::Engine>(network_.endpoint(Rank{r}), arithmetic, options.engine));
    network_.attach(*engines_.back());
  }
}

Cluster::~Cluster() = default;

std::vector<std::exception_ptr> Cluster::run(const Program& program, const Progress& progress,
                                             const Enough& enough) {
  std::vector<Running<void>> programs;
  programs.reserve(size());
  for (std::uint32_t r = 0; r < size(); ++r) {
    programs.emplace_back(program(*engines_[r]));
    while (engines_[r]->run()) {
    }
  }
  const auto waits = [&](std::uint32_t r) {
    return !programs[r].done() && !network_.dead(Rank{r});
  };
  // The first worker that still waits; all before it have ended.
  std::uint32_t first = 0;
  const auto more = [&] {
    while (first < size() && !waits(first)) {
      ++first;
    }
    return first < size();
  };
  bool broken_off = false;
  try {
    while (!broken_off && more() && network_.step()) {
      broken_off = enough && enough();
      if (progress && network_.events() % kEventsPerProgress == 0) {
        progress(network_);
      }
    }
  } catch (...) {
    // Programs may be dropped only when nothing of theirs is under way.
    for (const auto& engine : engines_) {
      engine->close();
    }
    throw;
  }
  std::vector<std::exception_ptr> ends;
  for (std::uint32_t r = 0; r < size(); ++r) {
    const bool hung = waits(r) && !broken_off;
    if (!programs[r].done()) {
      engines_[r]->close();
    }
    ends.push_back(hung ? std::make_exception_ptr(Error(
                              ErrorCode::Bug,
                              fmt::format("worker {} waits for ever: the network is silent", r)))
                        : programs[r].error());
  }
  return ends;
}

void rethrow_first(const std::vector<std::exception_ptr>& ends) {
  for (const std::exception_ptr& end : ends) {
    if (end) {
      std::rethrow_exception(end);
    }
  }
}

}  // namespace starling::sim
