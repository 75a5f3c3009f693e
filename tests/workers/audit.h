// Whether what a worker saw (audited_toy.h) is what its ledger says. All throw Error{Bug} that says
// what is wrong where.
#pragma once

#include <cstdint>
#include <istream>
#include <vector>

#include "starling/comm/ledger.h"
#include "starling/topology/algorithm.h"

namespace starling::test {

// One worker's run.
struct Run {
  Rank self{};
  std::size_t workers = 0;
  std::uint64_t steps = 0;  // a multiple of the sync period
  std::uint32_t sync_period = 0;
  bool lossy = false;  // rounds may be void
  std::vector<comm::Outcome> rounds;
  std::vector<comm::PickUp> pick_ups;
  std::vector<double> values;

  std::uint64_t voids() const;
  double longest_wait() const;  // seconds
};
void read(Run& run, std::istream& ledger);

// Every version once, in order, and every step; a sync holds all members in person.
void audit_order(const Run& run);
// Of averaged models: every average is that of the contributions of its row.
void audit_averages(const Run& run);
// Of gradients: the same, and every gradient counts once; where a round was void for its owner
// alone, again. `tables`: by worker, its table(), if it is alive.
using Tables = std::vector<std::vector<double>>;
void audit_gradients(const Run& run, const Tables& tables);
// Of held models.
void audit_held(const Run& run, const Tables& tables);

// Per version and worker: 0 if its contribution was not seen, or what it was plus 3.
std::vector<double> table(const Run& run);
// Per version: what was seen after the sync, -1 if it was void, 0 if it was none or not seen.
std::vector<double> syncs(const Run& run, bool held);
// The same bits wherever both were seen; how many those were.
std::size_t compare_syncs(const Run& run, const std::vector<double>& own,
                          const std::vector<double>& other);

}  // namespace starling::test
