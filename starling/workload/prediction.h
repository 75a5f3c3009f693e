// What the runtime model makes of a run, so that predicted and measured step times stand side by
// side in every summary: from the run's own parts (how long each worker computed, how long its
// exchanges were under way), or from a profile that was measured before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "starling/train/data_parallel.h"
#include "starling/train/plan_of_rounds.h"
#include "starling/workload/images_options.h"
#include "starling/workload/meeting.h"

namespace starling::workload {

// Of one worker: steps without waiting.
class OwnTimes {
 public:
  void add(double seconds, double forward);
  // As many numbers on every worker.
  std::vector<double> record(std::span<const comm::Exchanged> exchanges, std::int64_t phases) const;

 private:
  std::vector<float> seconds_;
  double forward_ = 0;  // sum
};

// What is predicted: rounds on so many workers, of a model in these buckets. Requires: not alone.
struct Predicted {
  const train::PlanOfRounds& rounds;
  const ImagesOptions& options;
  std::uint32_t workers = 0;
  std::uint32_t per_node = 1;
  std::vector<std::size_t> bucket_ends;  // in bytes
};
// Phases of the schedule that are told apart.
std::int64_t phases_of(const Predicted& what);

// Seconds per step; none if the model has no such rounds. `records` as record() makes them; those
// who are lost count as the first.
std::optional<double> predict_from_parts(const Predicted& what, const Meetings::Records& records);
// Also none if the profile has no exchanges of the schedule. Throws Error{Input} if it is of other
// workers or another model.
std::optional<double> predict_from_profile(const Predicted& what);
// As far as it can be said before workers have met.
void require_profile_of(const ImagesOptions& options, std::size_t workers);

}  // namespace starling::workload
