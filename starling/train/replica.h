// One worker's model as the coroutine of steps sees it (comm/step.h): its updates, bucket by bucket
// or whole, with everything that belongs to one: learning rate, decay by parameter, clipping, what
// is not finite. Knows torch only through the parameters that it is given.
//
// Threads: "the application's" where it says so; what comm::Application declares is called by the
// engine, and hands its work to the application's thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "starling/comm/step.h"
#include "starling/train/care.h"
#include "starling/train/desk.h"
#include "starling/train/flat_layout.h"
#include "starling/train/learning_rate.h"
#include "starling/train/optimizer.h"

namespace starling::train {

// The parameters of a module, by their index in the facts. The application's thread.
class Parameters {
 public:
  virtual ~Parameters() = default;
  // As the flat model lies, of its type; null if there is none in this step. Valid until drop().
  virtual const std::byte* gradient(std::size_t parameter) = 0;
  virtual void drop_gradient(std::size_t parameter) = 0;
  // The flat model has new values for it.
  virtual void moved(std::size_t parameter) = 0;
  // Of an optimizer of torch: its step, on the flat model in place. Gradients are the own ones
  // times `scale`, or those that lie in `mean` (a whole model, or nothing) times `scale`.
  virtual void torch_step(double lr_factor, const std::byte* mean, double scale) = 0;
};

struct ReplicaOptions {
  const topology::Algorithm* algorithm = nullptr;  // null: alone
  comm::Type type = comm::Type::Float32;
  bool overlap = true;
  Clip clip = Clip::None;
  double clip_norm = 1;
  NonFinite non_finite = NonFinite::Stop;
  LearningRate learning_rate = constant_rate();
  double batch = 1;
  double samples_per_step = 1;  // of all workers
  bool weigh_samples = false;
  Rank rank{};
};

class Replica final : public comm::Application {
 public:
  // `flat` is the model's memory; everything outlives this. Without a fused optimizer it is
  // torch's.
  Replica(Desk& desk, comm::Workers& workers, const FlatLayout& layout,
          std::span<const ParameterFacts> facts, std::span<const ParameterGroup> groups,
          comm::Blob flat, FusedOptimizer* optimizer, Parameters& parameters,
          const ReplicaOptions& options);

  // --- The application's ---
  // What it remembers from step to step, beside the model and the optimizer's state: steps of each
  // parameter, the norm of the last gradient, the weight of push-sum rows. And back, before the
  // first step, which is number `step`.
  std::span<const std::int64_t> taken() const { return taken_; }
  double last_norm() const { return std::isfinite(norm_) ? norm_ : previous_norm_; }
  double last_push_weight() const { return push_weight_; }
  void resume(std::uint64_t step, std::vector<std::int64_t> taken, double last_norm,
              double push_weight);
  void begin_step(std::uint64_t step, double samples, double gradient_scale);
  // Bucket `bucket` has all its gradients, or will get no more; in order.
  void bucket_ready(std::size_t bucket);
  // All buckets were ready. With `alone` this is the update.
  void computed();
  bool skipped() const { return skipped_; }
  double gradient_norm() const { return norm_; }
  Duration take_waited() { return std::exchange(waited_, Duration(0)); }
  double lr_factor() const { return options_.learning_rate(samples()); }
  double samples() const { return static_cast<double>(step_) * options_.samples_per_step; }
  // Whether a step is over as soon as it has been computed.
  bool is_ahead() const { return streaming_ != nullptr && !sends_gradients(); }
  // Elements of what is exchanged.
  std::size_t elements() const { return layout_.elements() + (weighs_gradients() ? 1 : 0); }

  // --- The engine's ---
  // The model that the engine holds, once version `v` has ended; false: it holds none (any more).
  Task<bool> read_held(comm::Version v, comm::Blob into);

  // --- comm::Application ---
  comm::Buffer model() override { return {options_.type, flat_}; }
  comm::Buffer gradient() override;
  Task<bool> more(Step step) override { return desk_.more(static_cast<std::uint64_t>(step.value)); }
  Task<void> compute(Step step) override {
    return desk_.computed(static_cast<std::uint64_t>(step.value));
  }
  void update(Step step, comm::Buffer model) override;
  bool update_at_once(const comm::Update& update) override;
  void weighs(double push_weight) override { push_weight_ = push_weight; }
  Task<void> apart(std::function<void()> work) override { return desk_.run(std::move(work)); }
  void begin_holding(const comm::ReadHeld& read) override { read_held_ = read; }
  void end_holding() override { read_held_ = {}; }
  bool streams() const override;
  void begin_streaming(comm::Streaming& streaming) override { streaming_ = &streaming; }
  // The application may be in the middle of a step: it lets go when it has come to its end.
  Task<void> end_streaming() override {
    return desk_.run([this] { streaming_ = nullptr; });
  }

 private:
  bool sends_gradients() const {
    return options_.algorithm != nullptr &&
           options_.algorithm->payload == topology::Payload::Gradients;
  }
  bool weighs_gradients() const { return options_.weigh_samples && sends_gradients(); }
  // Nothing is updated or sent before the last gradient is there.
  bool defers() const {
    return (options_.clip == Clip::Global && !sends_gradients()) ||
           options_.non_finite == NonFinite::Skip;
  }
  void work_off(std::size_t bucket);
  void send_gradients(std::size_t bucket);
  void mix_and_update(std::size_t bucket);
  void copy_gradients(std::size_t bucket, comm::Blob into);
  void look_at_gradients();
  double squares(const FlatLayout::Place& place, const std::byte* mean) const;
  double norm_so_far() const;
  double clip_factor(const comm::Update& update, double scale);
  void update_torch(const comm::Update& update, double scale);
  template <typename T>
  void update_places(const comm::Update& update, double scale);
  [[noreturn]] void diverged(std::size_t parameter, std::string_view what) const;

  Desk& desk_;
  comm::Workers& workers_;
  const FlatLayout& layout_;
  std::span<const ParameterFacts> facts_;
  std::span<const ParameterGroup> groups_;
  comm::Blob flat_;
  FusedOptimizer* optimizer_;
  Parameters& parameters_;
  ReplicaOptions options_;
  comm::Streaming* streaming_ = nullptr;
  comm::ReadHeld read_held_;  // the engine's

  std::vector<std::int64_t> taken_;  // steps of each parameter
  std::vector<std::byte> gradient_;  // flat, for rows that send it whole
  std::uint64_t step_ = 0;
  double samples_in_batch_ = 1;
  double gradient_scale_ = 1;
  bool skipped_ = false;
  double norm_ = 0;
  double push_weight_ = 1;  // the engine's during a step
  double previous_norm_ = 0;
  std::vector<double> squares_;  // of each parameter's gradient in this step
  Duration waited_{0};
};

}  // namespace starling::train
