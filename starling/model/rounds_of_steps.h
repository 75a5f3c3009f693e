// Who exchanges with whom after which step, and how long it takes: a schedule and its costs, laid
// out so that a recurrence can walk them. Periodic schedules are laid out once.
//
// Threads: one. Throws Error{Input} like predict().
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "starling/model/setting.h"
#include "starling/topology/view.h"

namespace starling::model {

// One exchange of a round: `needs` must have handed over before it starts; `takers` get its result.
// In a group the two are the same; otherwise the taker is the first of the needed, which are those
// it takes from and, if pushes wait, those it gives to.
struct PlannedExchange {
  std::span<const Rank> needs{};
  std::span<const Rank> takers{};
  std::size_t engine = 0;  // the same number for the same members in all rounds
  bool closed = true;
};

// All exchanges of one version; every worker takes in exactly one of them.
class Round {
 public:
  Round() = default;
  Round(Round&&) = default;  // not copied: exchanges look into members
  Round& operator=(Round&&) = default;

  std::span<const PlannedExchange> exchanges() const { return exchanges_; }
  double seconds(std::size_t bucket, std::size_t exchange) const {
    return seconds_[bucket * exchanges_.size() + exchange];
  }
  // Of all buckets, one after the other.
  double seconds_of_all(std::size_t exchange) const { return sums_[exchange]; }

 private:
  friend class RoundsOfSteps;
  std::vector<std::vector<Rank>> members_;  // of each exchange: those it needs
  std::vector<std::size_t> givers_;         // how many of them, from the first on, it takes from
  std::vector<PlannedExchange> exchanges_;
  std::vector<double> seconds_;  // buckets · exchanges
  std::vector<double> sums_;
};

class RoundsOfSteps {
 public:
  explicit RoundsOfSteps(const Setting& setting);

  // The round of version `version`; that of everybody at a sync. Valid until the next call.
  const Round& at(std::int64_t version);
  bool is_sync(std::int64_t version) const { return model::is_sync(setting_, version); }
  const Round& everybody() const { return everybody_; }
  // How many engines at() has named so far.
  std::size_t engines() const { return engines_.size(); }
  // Steps after which all repeats; none: it does not.
  std::optional<std::int64_t> period() const { return period_; }

 private:
  Round lay_out(std::int64_t version);
  void finish(Round& round, std::int64_t version);

  const Setting& setting_;
  topology::View view_;
  std::optional<std::int64_t> period_;
  std::map<std::vector<Rank>, std::size_t> engines_;
  std::vector<Round> phases_;  // as far as they have been asked for, by phase
  std::vector<bool> known_;
  Round everybody_;
  Round last_;  // of a schedule that does not repeat
};

}  // namespace starling::model
