// A libtorch model that trains together with the other workers of a job.
//
//     auto workers = starling::comm::connect();
//     starling::train::DataParallel replica(*model, *workers, {.algorithm = "wagma"},
//                                           starling::train::AdamW{.lr = 1e-3});
//     for (auto& batch : loader) {
//       replica.step([&] { return loss(model->forward(batch.data), batch.target); });
//     }
//     replica.with_consensus_model([&] { evaluate(model); });
//
// The model's parameters become views of one flat memory, cut into buckets in the order in which
// their gradients become ready. Where the algorithm allows it, a bucket is mixed, updated and
// published inside the backward pass, so that its exchange runs behind the rest of this step and
// most of the next. Workers agree on the model at the start: rank 0's values, buffers too.
//
// Threads: one at a time, the same one always. Collective (all living workers, in the same order):
// the constructor, with_consensus_model(), at_rest(). Everything throws Error; after that only
// destruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "starling/base/time.h"
#include "starling/comm/ledger.h"
#include "starling/comm/workers.h"
#include "starling/train/care.h"
#include "starling/train/learning_rate.h"
#include "starling/train/optimizer.h"
#include "starling/train/state.h"

namespace at {
class Tensor;
}
namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace starling::train {

// Any optimizer of torch, made for the flat model's parameters. Not fused: mixing, its step and the
// snapshot are passes of their own, after the backward pass.
struct TorchOptimizer {
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)> make;
};
using Optimizer = std::variant<SGD, Adam, AdamW, AccumAdam, AccumAdamW, TorchOptimizer>;

struct Options {
  std::string algorithm = "starling";  // starling topology --algorithms; or "alone": no averaging
  std::string schedule = "";           // empty: the algorithm's first
  std::optional<std::uint32_t> group_size = std::nullopt;
  std::uint32_t peers = 1;  // SGP: to how many each worker sends; base-k
  // WAGMA's tau, local SGD's H.
  std::optional<std::uint32_t> sync_period = std::nullopt;
  // Eager-SGD, whose models drift apart: after every so many steps each model becomes the average
  // of all; 0: never. Needs `steps`.
  std::uint64_t model_sync = 0;
  // Models are averaged "after" the update, or "beside" it, where the gradient was taken (D-PSGD,
  // WAGMA, local SGD); empty: as the algorithm has it.
  std::string averaging = "";
  // "all", "first", "first+SECONDS" (grace), "first+learnt", "majority" (a drawn worker),
  // "quorum:K", "need"; empty: the algorithm's.
  std::string trigger = "";
  std::optional<std::uint32_t> age_bound = std::nullopt;
  std::uint64_t seed = 0;
  // All workers take as many steps, and end together. None: who has finished leaves.
  std::optional<std::uint64_t> steps = std::nullopt;

  std::size_t bucket_bytes = std::size_t{25} << 20;
  // Names of parameters in the order in which gradients become ready; empty: as the first step has
  // it on rank 0.
  std::vector<std::string> order = {};
  // Decentralized Adam, Starling's own: exchange behind the next step; or inside this one.
  bool overlap = true;
  // Starling's own: gradients at the model as it is when a step begins, with what other workers
  // have sent meanwhile; or as it was after the own update.
  bool gradient_at_mixed = false;
  // Contributions are rounded to bf16 on the wire; models stay as they are.
  bool bf16 = false;

  Clip clip = Clip::None;
  double clip_norm = 1;
  NonFinite non_finite = NonFinite::Stop;
  // By name and number of dimensions. Default: no decay for those of less than two (bias, norm).
  std::function<ParameterGroup(std::string_view name, std::size_t dimensions)> group_of = {};
  LearningRate learning_rate = {};
  // Samples of a worker's batch; learning rates count them.
  double batch = 1;
  // Updates weigh as much as their samples (Batch::samples): of gradients the mean over samples, of
  // models the update times samples / batch.
  bool weigh_samples = false;

  std::string ledger = "";  // a file; empty: none
  // It cannot be written: told once, on the engine's thread, and training goes on without it.
  // Empty: training ends.
  std::function<void(const std::string& why)> ledger_lost = {};

  // Goes on where state() was taken, in place of rank 0's values: `steps` counts those of the run
  // before, and `order` is its. Shared, for each worker's own is large.
  std::shared_ptr<const State> resume = nullptr;
};

// What differs in one step.
struct Batch {
  std::optional<double> samples = std::nullopt;  // default: Options::batch
  double gradient_scale = 1;                     // of a scaled loss: 1 / scale
};

struct StepReport {
  double loss = 0;
  bool skipped = false;      // the gradient was not finite
  double gradient_norm = 0;  // if clipped
  Seconds waited{0};         // for others
};

// Where a step's computation took its time; without waiting, and without updates.
struct Timing {
  Seconds forward{0};
  std::vector<Seconds> backward;  // until each bucket was ready, in order
};

struct Consensus {
  double distance = 0;  // sqrt(mean over workers of |x_i - mean|²)
  double relative = 0;  // over |mean|
};

struct Totals {
  std::uint64_t steps = 0;  // taken here
  std::uint64_t skipped = 0;
  std::uint64_t void_rounds = 0;
  double stale_fraction = 0;  // of contributions of this worker's groups, that were late
  Seconds waited{0};
  std::uint64_t bytes = 0;       // contributed
  std::size_t model_copies = 0;  // beside the model's own parameters and the optimizer's state
  std::size_t workers = 0;       // that are left
};

class DataParallel {
 public:
  // `model` outlives this. Throws Error{Mismatch} naming the first difference between the models
  // of two workers, on all of them.
  DataParallel(torch::nn::Module& model, comm::Workers& workers, Options options,
               Optimizer optimizer);
  // Leaves, if finish() has not.
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // One step: `loss` computes the loss, its gradient is taken here.
  StepReport step(const std::function<at::Tensor()>& loss, const Batch& batch = {});
  // A micro-batch before the last of a step: its gradient is added to that of the coming step.
  void accumulate(const std::function<at::Tensor()>& loss);
  // A step whose computation is only emulated: `compute` takes its time and calls `ready` once for
  // each of the buckets(), in order, when its gradients would have been there. Parameters move by
  // gradients that are always the same.
  StepReport emulate(
      const std::function<void(const std::function<void(std::size_t)>& ready)>& compute);
  std::size_t buckets() const;
  // Where each of them ends in the flat model, in bytes. Requires: a step was taken.
  std::vector<std::size_t> bucket_ends() const;
  // Of the last step. Of an emulated one the forward pass is in the first bucket's time; of the
  // first step of a model whose order is not given there is nothing.
  const Timing& timing() const;

  // Runs `look` with the average of all workers' models (parameters and buffers of floating point)
  // in the model, and puts the own back. Training is bit for bit as without it. Collective; also
  // after finish().
  Consensus with_consensus_model(const std::function<void()>& look);

  // Runs `look` when all have taken as many steps and no round is under way. A model that the
  // engine holds is in the model's place then, so that the sum over workers of what state() has is
  // the one that only updates change. Training is bit for bit as without it. Collective.
  void at_rest(const std::function<void()>& look);

  // This worker's training as it is between two steps, for Options::resume: a copy. With rows that
  // wait for everyone, on as many workers, what follows has the same bits. With the others it is
  // the own model, as if everybody had just begun with it; take it at_rest().
  State state() const;
  // Parameters and buffers as they are now, as state() has them: inside with_consensus_model() the
  // average of all.
  std::vector<Stored> values() const;

  // No more steps here: waits for the others if all take as many and this worker has taken them,
  // leaves otherwise.
  void finish();

  // How long the last rounds were under way.
  std::vector<comm::Exchanged> exchanges() const;

  double lr() const;
  double samples() const;  // that all workers have seen
  Totals totals() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace starling::train
