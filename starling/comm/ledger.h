// What one worker's rounds did, row by row: enough to audit every average and to compute the run
// again (replay.h). Two kinds of rows: a round as it ended here, and a pick-up, which says which
// outcome a step used and how. A fixed ring of rows stands in front of the sink, which gets JSON
// lines; docs/rounds.md lists their fields.
//
// Threads: the engine's alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "starling/comm/round.h"

namespace starling::comm {

// A step used an outcome, or found none (its round was void).
struct PickUp {
  Step step{};
  std::optional<Version> version;
  double divisor = 1;
  bool late = false;  // the own contribution to that version was not of this step
  Duration waited{0};
};

// Counts since the start; those of several workers can be added.
struct LedgerTotals {
  std::uint64_t rounds = 0;  // ended, not void
  std::uint64_t syncs = 0;   // of these
  std::uint64_t voids = 0;
  std::uint64_t stale = 0;                     // own contributions that were not of that version
  std::map<std::int64_t, std::uint64_t> ages;  // of own contributions, in versions
  std::uint64_t pick_ups = 0;
  std::uint64_t late = 0;  // pick-ups by a step that had been passed
  Duration waited{0};      // by the application, for outcomes
  std::uint64_t bytes = 0;
  // Of the contributions to rounds that were not syncs.
  double stale_fraction() const {
    const std::uint64_t free = rounds - syncs;
    return free == 0 ? 0 : static_cast<double>(stale) / static_cast<double>(free);
  }
  LedgerTotals& operator+=(const LedgerTotals& other);
};

// How long parts of a round were under way here.
struct Exchanged {
  Version version = 0;
  bool is_sync = false;
  Duration time{0};
};

struct LedgerRow {
  Rank worker{};
  std::variant<Outcome, PickUp> what;
};

class Ledger {
 public:
  using Sink = std::function<void(std::string_view lines)>;
  // Without a sink only the totals are kept. `held`: contributions count updates (held_model.h), so
  // that one of version v is of its age 0 if v updates are in it.
  explicit Ledger(Rank worker, bool held = false, Sink sink = {});

  void note(const Outcome& outcome);
  void note(const PickUp& pick_up);
  // Hands everything to the sink.
  void flush();
  const LedgerTotals& totals() const { return totals_; }
  // Of the last rounds that were not void, in no order.
  const std::vector<Exchanged>& exchanged() const { return exchanged_; }

 private:
  static constexpr std::size_t kRing = 1024;
  template <typename Row>
  void keep(const Row& row);

  Rank worker_;
  bool held_;
  Sink sink_;
  std::vector<std::variant<Outcome, PickUp>> ring_;
  std::size_t filled_ = 0;
  LedgerTotals totals_;
  std::vector<Exchanged> exchanged_;  // a ring
};

// A sink that writes to a new file. If it cannot, at once or later, `lost` is told why, once, and
// nothing more is written; without it Error{Environment} is thrown.
Ledger::Sink ledger_file(const std::string& path,
                         std::function<void(const std::string& why)> lost = {});

// A row as a line of JSON, and back. Throws Error{Input} naming what cannot be read.
std::string to_json_line(Rank worker, const Outcome& outcome);
std::string to_json_line(Rank worker, const PickUp& pick_up);
std::vector<LedgerRow> read_ledger(std::istream& lines);

}  // namespace starling::comm
