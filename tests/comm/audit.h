// An audit of rounds, from above: all workers of a virtual network live in one process, so what
// each of them contributed to a version can be written down and compared with what every member
// got.
//
// Two oracles, of every round on every worker:
//   - the contributions themselves: the result is their sum, to the bit (all numbers are small
//     integers), and the outcome names the step of each of them;
//   - what the numbers say: block i of a contribution holds the step that worker i published last,
//     in each of its elements, so that a sum says by itself whose contribution of which step is in
//     it, and whether any was torn.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "starling/comm/rounds.h"
#include "starling/comm/snapshots.h"
#include "starling/sim/cluster.h"
#include "tests/comm/toy.h"

namespace starling::test {

struct AuditCrew {
  std::size_t workers = 8;
  std::string schedule = "groups";
  std::optional<std::uint32_t> group_size;
  comm::RoundsOptions rounds;
  sim::NetworkOptions network;
  comm::EngineOptions engine;
  std::uint64_t steps = 10;
  std::function<std::uint64_t(Rank)> steps_of;  // if they differ
  Pace pace = [](Rank, Step) { return 1e-3; };
  Pace writing = [](Rank, Step) { return 0.0; };  // passes in the middle of a snapshot
  Pace reading = [](Rank, Step) { return 0.0; };  // an outcome is looked at for so long
  std::size_t per_worker = 3;                     // elements of a block
  // In place of blocks: all workers share one number, in which each has three bits, and sets the
  // one that its step says. At most 8 workers.
  bool bits = false;
  // Gradients: block i has an element per step of worker i, 1 in that of the step; what was missed
  // is added up.
  bool accumulate = false;
};

struct Audited {
  std::vector<std::exception_ptr> ends;
  std::vector<std::vector<comm::Outcome>> outcomes;  // by rank, in the order they came
  std::vector<std::vector<comm::PickUp>> pick_ups;
  std::vector<std::vector<std::uint64_t>> notes;  // by rank: how many were sent by each outcome
  std::vector<std::size_t> copies;
  std::vector<std::vector<double>> gathered;  // by rank: the sum of all results
  std::vector<std::string> findings;          // what is wrong; empty if all is well
  std::uint64_t audited = 0;                  // results compared

  std::uint64_t notes_until(comm::Version v) const;  // of all workers
  std::uint64_t voids() const;
  // Of the contributions to versions that are no syncs.
  double stale_fraction() const;
};

Audited audit(const AuditCrew& crew);

// Fails the test for findings, workers that ended with an error, versions that did not run exactly
// once and in order, and for an audit that saw nothing.
void expect_clean(const Audited& audited);

// How long steps take: means of a millisecond, all from a seed.
Pace jitter(std::uint64_t seed, double spread = 0.5);      // uniform about the mean
Pace stragglers(std::uint64_t seed, double lateness = 3);  // one step in ten takes so much longer
Pace heavy_tails(std::uint64_t seed);                      // now and then ten times, or a hundred

// How many versions (or short runs) the long tests go through: STARLING_VERSIONS, or else `few`.
std::uint64_t versions_or(std::uint64_t few);

}  // namespace starling::test
