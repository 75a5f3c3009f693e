// What a plan chooses from: rows of the table of algorithms with what they leave open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "starling/topology/algorithm.h"

namespace starling::model {

// Who exchanges with whom: what has to be measured. Several candidates may share one.
struct Pattern {
  std::string schedule;
  std::optional<std::uint32_t> group_size = std::nullopt;
  std::uint32_t peers = 1;
  bool push = false;  // to out-neighbours alone

  friend bool operator==(const Pattern&, const Pattern&) = default;
};

struct Candidate {
  const topology::Algorithm* algorithm = nullptr;
  Pattern pattern;
  std::optional<std::uint32_t> sync_period = std::nullopt;
  // Whether a plan may recommend it: its quality holds (docs/results.md).
  bool advisable = false;
};

// All that make sense for so many workers; of equally fast ones the earlier is preferred, for its
// models differ less. Requires: workers >= 2.
std::vector<Candidate> candidates(std::uint32_t workers, std::uint32_t per_node);

// Those of them that differ; everybody with everybody is always there.
std::vector<Pattern> patterns(const std::vector<Candidate>& candidates);

// "of schedule 'groups' in groups of 4"
std::string name_of(const Pattern& pattern);

// "dadam, exponential"; "wagma, groups of 4"
std::string title(const Candidate& candidate);

}  // namespace starling::model
