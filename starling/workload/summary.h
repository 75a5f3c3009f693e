// What a run came to: put together by its leader from a record of each worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "starling/base/time.h"
#include "starling/train/data_parallel.h"
#include "starling/workload/meeting.h"

namespace starling::workload {

// How long steps took and what they lost, on one worker.
class StepStatistics {
 public:
  void add(double seconds, double loss);  // NaN: no loss
  // Of a step of the run that this one goes on with.
  void add_loss_before(double loss);
  // Of the last tenth of the steps, at least one; NaN if there is none.
  double recent_loss() const;
  double mean_seconds() const;
  // The q-quantile, 0 ≤ q ≤ 1.
  double quantile_seconds(double q) const;

 private:
  std::vector<float> seconds_;
  std::vector<float> losses_;
};

// Files of a worker that it could not write to the end.
struct FilesLost {
  bool metrics = false;
  bool ledger = false;
};

// A worker's part of the summary, as numbers that can be sent.
std::vector<double> record_of(const StepStatistics& steps, const train::Totals& totals,
                              double train_seconds, FilesLost lost = {});

struct Evaluation {
  std::uint64_t step = 0;
  double accuracy = 0;
  double loss = 0;
  train::Consensus consensus;
  Seconds time{0};  // of training, until then
};
nlohmann::ordered_json json_of(const Evaluation& evaluation);
Evaluation evaluation_of(const nlohmann::ordered_json& json);

// The part of the summary that the records say: seconds, losses, staleness, who is lost. `samples`:
// that all workers have seen.
nlohmann::ordered_json results_of(const Meetings::Records& records, double samples);

// For people: a few lines.
std::string text_of_summary(const nlohmann::ordered_json& summary);

}  // namespace starling::workload
