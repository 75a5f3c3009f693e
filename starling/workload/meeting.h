// Workers that meet to have one of them, the leader, do something with a few numbers of everybody:
// put an evaluation together, write the summary. The leader is the lowest rank that is not lost; if
// it is lost before it has done its part, the next one leads.
//
// Threads: the application's, as workers.run() has it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "starling/base/units.h"
#include "starling/comm/workers.h"

namespace starling::workload {

// Somebody else has failed, and says why.
class AlreadyTold : public std::exception {
 public:
  const char* what() const noexcept override { return "another worker failed, and has said why"; }
};

class Meetings {
 public:
  explicit Meetings(comm::Workers& workers) : workers_(workers) {}

  // By rank; nothing of those who are lost.
  using Records = std::vector<std::optional<std::vector<double>>>;

  using Answer = std::vector<double>;

  // Collective: everyone that is not lost, the same lengths everywhere, records not empty. `lead`
  // runs on the leader alone, usually once; the others wait for its answer, of `length` numbers.
  // What it throws is thrown there, and AlreadyTold on the others.
  Answer meet(std::span<const double> own, std::size_t length,
              const std::function<Answer(const Records&)>& lead);
  // Whether this worker would lead now.
  bool leads() { return lowest_living() == workers_.rank(); }

  // What worker 0 makes of it, on everyone; for the start, when nobody may be missing. What it
  // throws is thrown there, and AlreadyTold on the others. At most 4,095 bytes.
  std::string told_by_first(const std::function<std::string()>& make);

 private:
  Answer lead_others(std::span<const double> own, std::size_t length,
                     const std::function<Answer(const Records&)>& lead);
  Answer follow(Rank leader, std::span<const double> own, std::size_t length);
  Rank lowest_living();
  std::uint64_t id(std::uint64_t phase, Rank leader, Rank follower) const;

  comm::Workers& workers_;
  std::uint64_t meeting_ = 0;
};

}  // namespace starling::workload
