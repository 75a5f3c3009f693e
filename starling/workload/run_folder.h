// The folder of one run, and what is written there:
//   config.json           what was asked for
//   metrics-RANK.jsonl    a line per step and evaluation of each worker
//   ledger-RANK.jsonl     every round (docs/rounds.md)
//   summary.json          the result; is there only if the run came to its end
//   checkpoints/          see checkpoint.h
//   .lock                 held by every worker of the run as long as it lives
//
// Errors of the file system (a full disk, no permission) are Error{Environment}, in one line that
// names the file; but training goes on without metrics and ledger. Threads: one.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/line_file.h"
#include "starling/base/time.h"
#include "starling/base/units.h"

namespace starling::workload {

// Makes a folder that was not there: `wanted`, or if that is empty runs/DATE-TIME-WORDS, with a
// number if there is one already. A folder that is wanted may exist if it is empty.
std::filesystem::path make_run_folder(const std::string& wanted, std::string_view words);

// Whole or not at all: written beside, then renamed.
void write_json(const std::filesystem::path& file, const nlohmann::ordered_json& value);
// As write_json() writes it.
std::string text_of(const nlohmann::ordered_json& value);

// For a run that goes on after `step` steps: takes what came after them out of a worker's metrics
// (if it had `ended`, its last evaluation too), and returns what is left; its ledger gets out of
// the way (ledger-RANK.before-STEP.jsonl). Nothing if there are none.
std::vector<nlohmann::ordered_json> continue_files(const std::filesystem::path& folder, Rank worker,
                                                   std::uint64_t step, bool ended);

std::filesystem::path metrics_file(const std::filesystem::path& folder, Rank worker);
std::filesystem::path ledger_file(const std::filesystem::path& folder, Rank worker);

// A file cannot be written, which is no reason to stop: one line on stderr, if that can be written.
void say_lost(const std::string& why);

// JSON lines, on disk at the latest a second later, and when closed. If they cannot be written,
// that is said, and no more are: the file is lost, and ends after a whole line.
class Metrics {
 public:
  // Throws Error{Environment} if there cannot be such a file.
  Metrics(const std::filesystem::path& folder, Rank worker, bool appends = false);

  void write(const nlohmann::ordered_json& line);
  // On its way to the disk: also if this process is killed.
  void flush();
  void close();
  bool is_lost() const { return lost_; }

 private:
  template <typename Act>
  void attempt(const Act& act);

  std::optional<LineFile> file_;
  std::string lines_;  // not written yet
  bool lost_ = false;
  WallTime flushed_ = std::chrono::steady_clock::now();
};

}  // namespace starling::workload
