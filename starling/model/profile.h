// What was measured of a model on some workers: how long it computes, updates and exchanges. Enough
// to predict every algorithm without running it; a file of it is JSON (docs/runtime-model.md) and
// may be used anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/compute_times.h"
#include "starling/model/candidates.h"

namespace starling::model {

// An exchange of b bytes alone takes latency + b / bandwidth.
struct Link {
  double latency = 0;    // seconds
  double bandwidth = 0;  // bytes per second
};

// The exchanges of one step of a schedule, with all its groups at it at once.
struct ExchangeSample {
  std::size_t bytes = 0;
  std::vector<double> seconds;  // by rank
};
struct ExchangePhase {
  Pattern pattern;
  std::int64_t phase = 0;  // of the schedule: step modulo period
  std::vector<ExchangeSample> samples;
};

// A candidate that was trained with.
struct Trained {
  std::string algorithm;
  Pattern pattern;
  std::optional<std::uint32_t> sync_period = std::nullopt;
  std::size_t bucket_bytes = 0;
  std::uint64_t steps = 0;
  double step = 0;      // seconds, mean
  double interval = 0;  // half of its 95 % interval
};

struct Profile {
  std::uint32_t workers = 0;
  std::uint32_t per_node = 1;
  std::string launcher;
  std::string transport;
  std::string model;
  std::uint64_t parameters = 0;
  std::size_t bytes = 0;  // of the flat model
  // Of each worker, steps as they were; without updates.
  std::vector<std::vector<ComputeTime>> compute;
  // Pieces of the flat model in the order in which gradients become ready: where each ends, in
  // bytes, and its share of the backward pass.
  std::vector<std::size_t> ends;
  std::vector<double> shares;
  // Seconds that a step takes beside computing and waiting: the update, and whatever is copied and
  // mixed for exchanges; by who exchanges what.
  struct Updates {
    double gradients = 0;   // all-reduce
    double parameters = 0;  // WAGMA
    double behind = 0;      // decentralized Adam
    double held = 0;        // Starling's own
  };
  Updates updates;
  Link network;  // between nodes; of one node: as local
  Link local;
  std::vector<ExchangePhase> exchanges;
  std::vector<Trained> trained;  // to hold predictions against
};

// Of the form of files. Another one means other things by its numbers.
inline constexpr int kProfileFormat = 1;

// How many phases of a pattern are measured: a period of its schedule, if it is not too long.
std::int64_t measured_phases(const Pattern& pattern, std::uint32_t workers, std::uint32_t per_node);

// Of a step of `row`.
double update_seconds(const Profile& profile, const topology::Algorithm& row);

// Throws Error{Input} that names the file, the key and the line: not JSON, of another version,
// absent, negative or of the wrong kind; exchanges of a candidate that are missing.
Profile read_profile(const std::filesystem::path& file);
void write_profile(const Profile& profile, const std::filesystem::path& file);

}  // namespace starling::model
