// A toy to train, and a crew of workers that trains it on the virtual network: a quadratic per
// worker, F_i(w) = |w - target_i|^2 / 2, whose gradient may carry noise that follows from (seed,
// worker, step); the time of a step follows from a seed too.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "starling/base/random.h"
#include "starling/comm/step.h"
#include "starling/sim/cluster.h"

namespace starling::test {

// Elementwise: model[i] += change(step, i, x[i]), where x is the model the gradient was taken at.
using Change = std::function<float(Rank, Step, std::size_t, float)>;
using Pace = std::function<double(Rank, Step)>;  // seconds

class Toy final : public comm::Application {
 public:
  Toy(comm::Engine& engine, std::size_t elements, Change change, Pace pace);

  comm::Buffer model() override { return comm::output(std::span(model_)); }
  comm::Buffer gradient() override { return comm::output(std::span(gradient_)); }
  Task<void> compute(Step step) override;
  void update(Step step, comm::Buffer model) override;
  bool update_at_once(const comm::Update& update) override;
  Task<void> apart(std::function<void()> work) override;
  bool streams() const override { return streams_; }
  Task<void> compute_in_parts(Step step, comm::Streaming& streaming) override;
  // From now on it works part by part (comm/streaming.h): each part takes a share of the step's
  // time, and `mixed`, if there is one, is told what a part was mixed to, before it is updated, and
  // of how many models that is the mean (1: its own).
  using Mixed = std::function<void(Rank, Step, std::size_t part, std::span<float>, double divisor)>;
  void stream(bool gradients, Mixed mixed);
  // apart() takes up to so many seconds, at random.
  void hop(double seconds, std::uint64_t seed);

  std::vector<float>& values() { return model_; }

 private:
  Task<void> part_time(Step step, std::size_t parts);
  void mix_and_update(Step step, const comm::Streaming& streaming, std::size_t part);

  comm::Engine& engine_;
  Change change_;
  Pace pace_;
  std::vector<float> model_;
  std::vector<float> gradient_;  // what update() adds
  bool streams_ = false;
  bool sends_gradients_ = false;
  Mixed mixed_;
  double hop_ = 0;
  RandomSequence hops_{Random(0)};
};

// A run on the virtual network.
struct Crew {
  std::size_t workers = 4;
  std::size_t elements = 4;
  std::string algorithm = "wagma";
  std::string schedule;  // default: the algorithm's
  std::optional<std::uint32_t> group_size;
  comm::StepOptions step;
  sim::NetworkOptions network;
  comm::EngineOptions engine;
  Change change = [](Rank, Step, std::size_t, float) { return 0.0F; };
  Pace pace = [](Rank, Step) { return 1e-3; };
  double hop = 0;  // Toy::hop
  bool streams = false;
  Toy::Mixed mixed;
  std::function<float(Rank, std::size_t)> initial = [](Rank, std::size_t) { return 0.0F; };
  std::vector<sim::Fault> faults;
  // Steps of one worker, if they differ.
  std::function<std::uint64_t(Rank)> steps_of;
  std::function<void(Rank, Step, Toy&, comm::Engine&)> after_step;
};

struct Trained {
  std::vector<std::vector<float>> models;
  std::vector<std::exception_ptr> ends;
  std::vector<comm::StepReport> reports;
  std::vector<comm::LedgerRow> ledger;
  std::vector<comm::LedgerTotals> totals;  // by rank
  std::vector<double> seconds;             // when each worker ended, in virtual time
  std::uint64_t events = 0;

  comm::LedgerTotals total() const;
  // Rows of one worker.
  std::vector<comm::Outcome> rounds_of(Rank rank) const;
  std::vector<comm::PickUp> pick_ups_of(Rank rank) const;
};

Trained train(Crew crew);
std::string text_of(const std::exception_ptr& end);

// How long steps take: means of a millisecond, all from a seed.
Pace jitter(std::uint64_t seed, double spread = 0.5);      // uniform about the mean
Pace stragglers(std::uint64_t seed, double lateness = 3);  // one step in ten takes so much longer
Pace heavy_tails(std::uint64_t seed);                      // now and then ten times, or a hundred

// How many versions (or short runs) the long tests go through: STARLING_VERSIONS, or else `few`.
std::uint64_t versions_or(std::uint64_t few);
// As many versions, in runs of a few thousand with seeds of their own.
void in_runs(std::uint64_t versions,
             const std::function<void(std::uint64_t seed, std::uint64_t steps)>& run);

}  // namespace starling::test
