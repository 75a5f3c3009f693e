// N workers with an engine each on one virtual network, running the same kind of program: the way
// most tests and simulations use the room.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "starling/base/task.h"
#include "starling/comm/arithmetic.h"
#include "starling/comm/engine.h"
#include "starling/sim/network.h"

namespace starling::sim {

enum class Payload { Real, Weightless };

struct ClusterOptions {
  NetworkOptions network;
  comm::EngineOptions engine;
  Payload payload = Payload::Real;
};

class Cluster {
 public:
  using Program = std::function<Task<void>(comm::Engine&)>;

  explicit Cluster(ClusterOptions options);
  ~Cluster();

  std::size_t size() const { return engines_.size(); }
  Network& network() { return network_; }
  comm::Engine& engine(Rank rank) { return *engines_.at(rank.index()); }

  // Starts `program` on every worker at the present virtual time and runs the network until all
  // living workers have ended it. Returns, by rank, the exception a program ended with, or null; a
  // dead worker's is Error{Cancelled}. If the network falls silent while a program still waits,
  // every such program ends with Error{Bug}.
  // A worker that died, or whose program was ended by silence, takes part in no later run.
  // `progress`, if there is one, is called every few ten thousand events.
  using Progress = std::function<void(const Network&)>;
  // `enough`, if there is one, is asked after every event: when it holds, all programs are broken
  // off, and those that had not ended end with Error{Cancelled}.
  using Enough = std::function<bool()>;
  std::vector<std::exception_ptr> run(const Program& program, const Progress& progress = {},
                                      const Enough& enough = {});

 private:
  comm::KernelArithmetic real_;
  comm::NullArithmetic weightless_;
  Network network_;
  std::vector<std::unique_ptr<comm::Engine>> engines_;
};

// Rethrows the first exception of a run, if there is one.
void rethrow_first(const std::vector<std::exception_ptr>& ends);

}  // namespace starling::sim
