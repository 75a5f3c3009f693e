#include "starling/model/candidates.h"

#include <fmt/format.h>

#include <algorithm>

#include "starling/base/error.h"
#include "starling/topology/schedule.h"

namespace starling::model {
namespace {

using topology::find_algorithm;

std::vector<std::uint32_t> group_sizes(std::uint32_t workers) {
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t size = 2; size < workers; size *= 2) {
    sizes.push_back(size);
  }
  const std::uint32_t usual = topology::default_group_size(workers);
  if (usual > 1 && std::find(sizes.begin(), sizes.end(), usual) == sizes.end()) {
    sizes.push_back(usual);
  }
  return sizes.empty() ? std::vector{workers} : sizes;
}

}  // namespace

std::vector<Candidate> candidates(std::uint32_t workers, std::uint32_t per_node) {
  check(workers >= 2, "a plan for {} worker", workers);
  std::vector<Candidate> all;
  const auto add = [&](const char* algorithm, Pattern pattern, bool advisable) {
    const topology::Algorithm& row = find_algorithm(algorithm);
    all.push_back({&row, std::move(pattern), topology::default_sync_period(row), advisable});
  };
  add("all-reduce", {.schedule = "complete"}, true);
  add("dadam", {.schedule = "complete"}, true);
  if (per_node > 1 && per_node < workers && workers % per_node == 0) {
    add("dadam", {.schedule = "aer"}, true);
  }
  add("dadam", {.schedule = "exponential"}, true);
  add("dadam", {.schedule = "ring"}, true);
  const std::vector<std::uint32_t> sizes = group_sizes(workers);
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    add("starling", {.schedule = "groups", .group_size = *size}, true);
  }
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    add("wagma", {.schedule = "groups", .group_size = *size}, true);
  }
  add("local-sgd", {.schedule = "complete"}, false);
  add("d-psgd", {.schedule = "ring-neighbours"}, false);
  add("sgp", {.schedule = "push", .push = true}, false);
  add("overlapped-sgp", {.schedule = "push", .push = true}, false);
  add("ad-psgd", {.schedule = "pairs"}, false);
  add("eager-solo", {.schedule = "complete"}, false);
  add("eager-majority", {.schedule = "complete"}, false);
  return all;
}

std::vector<Pattern> patterns(const std::vector<Candidate>& candidates) {
  std::vector<Pattern> different = {{.schedule = "complete"}};
  for (const Candidate& candidate : candidates) {
    if (std::find(different.begin(), different.end(), candidate.pattern) == different.end()) {
      different.push_back(candidate.pattern);
    }
  }
  return different;
}

std::string name_of(const Pattern& pattern) {
  return fmt::format(
      "of schedule '{}'{}", pattern.schedule,
      pattern.group_size ? fmt::format(" in groups of {}", *pattern.group_size) : "");
}

std::string title(const Candidate& candidate) {
  std::string text(candidate.algorithm->name);
  if (candidate.pattern.group_size) {
    text += fmt::format(", groups of {}", *candidate.pattern.group_size);
  } else if (candidate.algorithm->schedules.size() > 1) {
    text += fmt::format(", {}", candidate.pattern.schedule);
  }
  return text;
}

}  // namespace starling::model
