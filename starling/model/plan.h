// The planner: predicts every candidate from a profile, as measured or for workers and links that
// the user does not have, and says which to take and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "starling/model/predict.h"
#include "starling/model/profile.h"

namespace starling::model {

// What is asked. Absent: as the profile has it.
struct Question {
  std::optional<std::uint32_t> workers = std::nullopt;
  std::optional<std::uint32_t> per_node = std::nullopt;
  std::optional<double> bandwidth = std::nullopt;  // between nodes, bytes per second
  std::optional<double> latency = std::nullopt;    // between nodes, seconds
  // Absent: whatever is fastest.
  std::optional<std::size_t> bucket_bytes = std::nullopt;
  std::uint64_t steps = 2000;  // that are predicted
  std::uint64_t seed = 0;
  // Exchanges as if each had the links to itself, whatever was measured.
  bool by_links = false;

  // Whether anything is asked that the profile does not have: exchanges then follow from the speed
  // of links (what_if_costs.h), and not from what was measured.
  bool is_what_if(const Profile& profile) const;
};

// Less is not worth another algorithm than all-reduce; or another one than the next.
inline constexpr double kWorthwhile = 0.03;
inline constexpr double kTie = 0.01;

struct Choice {
  Candidate candidate;
  std::size_t bucket_bytes = 0;
  std::size_t buckets = 1;
  Prediction prediction;
  double speed_up = 1;        // over all-reduce
  double bytes_per_node = 0;  // through the busiest card, the busier way, per step
};

struct Plan {
  std::uint32_t workers = 0;
  std::uint32_t per_node = 1;
  double compute = 0;           // seconds, mean of a step
  double variation = 0;         // its coefficient of variation
  std::vector<Choice> choices;  // the fastest first
  std::size_t recommended = 0;
  std::size_t all_reduce = 0;
  std::vector<std::string> why;  // in words
};

// Throws Error{Input}: fewer than two workers (there is nothing to decide), more nodes than
// workers.
Plan make_plan(const Profile& profile, const Question& question);

// Whether it exchanges bucket by bucket; others exchange the whole model at once.
bool exchanges_in_buckets(const topology::Algorithm& row);

// Of one candidate with buckets of so many bytes. `change`: what else is not as the row has it.
Choice predict_choice(const Profile& profile, const Question& question, const Candidate& candidate,
                      std::size_t bucket_bytes, const std::function<void(Setting&)>& change = {});

}  // namespace starling::model
