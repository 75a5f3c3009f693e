// Workers that meet to have one of them, the leader, do something with a few numbers of everybody:
// put an evaluation together, write the summary. The leader is the lowest rank that is not lost; if
// it is lost before it has done its part, the next one leads.
//
// Threads: the application's. All is collective, except leads() and alive().
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "starling/comm/workers.h"
#include "starling/train/assembly.h"

namespace starling::workload {

// Somebody else has failed, and says why.
class AlreadyTold : public std::exception {
 public:
  explicit AlreadyTold(bool of_input) : of_input_(of_input) {}
  // Whether the input is wrong.
  bool of_input() const { return of_input_; }
  const char* what() const noexcept override { return "another worker failed, and has said why"; }

 private:
  bool of_input_;
};

class Meetings {
 public:
  explicit Meetings(comm::Workers& workers)
      : workers_(workers), assembly_(workers, workers.next_series()) {}

  // By rank; nothing of those who are lost.
  using Records = std::vector<std::optional<std::vector<double>>>;
  using Answer = std::vector<double>;

  // Records are not empty; they and answers have the same length everywhere. `lead` runs on the
  // leader alone, usually once; the others wait for its answer, of `length` numbers. What it throws
  // is thrown there, and AlreadyTold on the others.
  Answer meet(std::span<const double> own, std::size_t length,
              const std::function<Answer(const Records&)>& lead);

  // The text that the leader makes, on everyone. What it throws is thrown there, and AlreadyTold on
  // the others.
  std::string told_by_leader(const std::function<std::string()>& make);

  // Everybody's number, by rank, on everyone. Throws Error{Lost} if somebody is lost.
  std::vector<double> everyones(double own);

  // By rank, as far as this worker knows.
  std::vector<bool> alive();
  // Whether this worker would lead now.
  bool leads();

 private:
  Records gather(std::span<const double> own);

  comm::Workers& workers_;
  train::Assembly assembly_;
};

}  // namespace starling::workload
