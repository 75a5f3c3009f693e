#include "starling/train/data_parallel.h"

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <chrono>
#include <future>

#include "starling/base/error.h"
#include "starling/comm/ledger.h"
#include "starling/comm/step.h"
#include "starling/topology/algorithm.h"
#include "starling/topology/schedule.h"
#include "starling/train/agreement.h"
#include "starling/train/assembly.h"
#include "starling/train/desk.h"
#include "starling/train/flat_layout.h"
#include "starling/train/model_average.h"
#include "starling/train/module_parameters.h"
#include "starling/train/plan_of_rounds.h"
#include "starling/train/replica.h"

namespace starling::train {
namespace {

ParameterGroup by_dimensions(std::string_view, std::size_t dimensions) {
  return {.lr_factor = 1, .decay_factor = dimensions < 2 ? 0.0 : 1.0};
}

}  // namespace

class DataParallel::Impl {
 public:
  Impl(torch::nn::Module& model, comm::Workers& workers, Options options, Optimizer optimizer)
      : workers_(workers),
        options_(std::move(options)),
        optimizer_(std::move(optimizer)),
        series_(workers.next_series()),
        assembly_(workers, workers.next_series()),
        parameters_(model),
        plan_(plan_rounds(workers, options_)),
        desk_(workers) {
    require(options_.bucket_bytes > 0, "buckets of 0 bytes");
    require(options_.batch > 0, "a batch of {} samples", options_.batch);
    require(options_.clip == Clip::None || options_.clip_norm > 0, "clipping to a norm of {}",
            options_.clip_norm);
    require(options_.model_sync == 0 || (options_.steps && is_eager()),
            "model syncs are for eager-SGD, and for as many steps on every worker");
    for (const ParameterFacts& parameter : parameters_.facts()) {
      groups_.push_back((options_.group_of ? options_.group_of : by_dimensions)(
          parameter.name, parameter.dimensions));
    }
    if (options_.resume) {
      parameters_.restore(*options_.resume);
      options_.order = options_.resume->order;
      steps_ = first_ = options_.resume->step;
    }
    require(!options_.steps || steps_ <= *options_.steps,
            "the run that is resumed has taken {} steps already, more than {}", steps_,
            options_.steps.value_or(0));
    agree(assembly_, workers_, description());
    if (!options_.resume) {
      std::vector<std::byte> values = parameters_.values();
      assembly_.broadcast(values);
      parameters_.set_values(values);
    }
    if (const auto* own = std::get_if<TorchOptimizer>(&optimizer_)) {
      parameters_.use(own->make);
    } else {
      make_fused(1);  // says now if a value is out of range
    }
    if (options_.resume) {
      parameters_.restore_beside(*options_.resume);
    }
    parameters_.on_gradient([this](std::size_t parameter) { on_gradient(parameter); });
    if (!options_.order.empty()) {
      lay_out(order_of(parameters_.facts(), options_.order));
    }
  }

  ~Impl() {
    try {
      finish();
    } catch (...) {
      // Whoever wants to know calls finish().
    }
  }

  StepReport step(const std::function<at::Tensor()>& loss, const Batch& batch) {
    double value = 0;
    StepReport report = take_step(batch, [&] {
      const at::Tensor result = loss();
      value = result.item<double>();
      timing_.forward = lap();
      result.backward();
    });
    report.loss = value;
    return report;
  }

  void accumulate(const std::function<at::Tensor()>& loss) {
    hears_ = false;
    accumulates_ = true;
    loss().backward();
  }

  StepReport emulate(const std::function<void(const std::function<void(std::size_t)>&)>& compute) {
    if (!replica_) {
      lay_out(agreed_order(last_first(parameters_.facts().size())));
    }
    if (!emulates_) {
      parameters_.set_gradients(1e-3);
      emulates_ = true;
    }
    return take_step({}, [&] { compute([&](std::size_t) { ready_next_bucket(); }); });
  }

  std::size_t buckets() const { return layout_ ? layout_->buckets() : 0; }

  std::vector<std::size_t> bucket_ends() const {
    check(layout_.has_value(), "buckets before the first step");
    std::vector<std::size_t> ends(layout_->ends().begin(), layout_->ends().end());
    for (std::size_t& end : ends) {
      end *= comm::size_of(parameters_.type());
    }
    return ends;
  }

  const Timing& timing() const { return timing_; }

  Consensus with_consensus_model(const std::function<void()>& look) {
    if (!replica_) {
      parameters_.unchanged(look);  // nobody has taken a step: all models are the same
      return {};
    }
    const ModelAverage average(assembly_, workers_, parameters_);
    const Consensus consensus = average.distance();
    average.look([&] { parameters_.unchanged(look); });
    return consensus;
  }

  void at_rest(const std::function<void()>& look) {
    if (!replica_) {
      look();
      return;
    }
    assembly_.sum(1.0);  // all updates are handed in
    std::vector<std::byte> held(parameters_.flat().size);
    const bool holds = workers_.run([&](comm::Engine&) {
      return replica_->read_held(steps_, comm::Blob{held.data(), held.size()});
    });
    assembly_.sum(1.0);  // and what came of them is read: nobody has gone on
    if (!holds) {
      look();
      return;
    }
    const comm::Blob flat = parameters_.flat();
    const std::vector<std::byte> own(flat.data, flat.data + flat.size);
    const std::vector<double> buffers = parameters_.buffers();
    look_at(parameters_, {{held.data(), held.size()}, buffers}, {{own.data(), own.size()}, buffers},
            look);
  }

  State state() {
    require(!accumulates_,
            "a state between the micro-batches of a step: their gradients would be lost");
    State state;
    state.step = steps_;
    state.samples = samples();
    state.tensors = parameters_.stored();
    const auto facts = parameters_.facts();
    if (replica_) {
      state.push_weight = replica_->last_push_weight();
      state.previous_norm = replica_->last_norm();
      for (const FlatLayout::Place& place : layout_->places()) {
        state.order.push_back(facts[place.parameter].name);
      }
      for (std::size_t p = 0; p < facts.size(); ++p) {
        state.taken[facts[p].name] = replica_->taken()[p];
      }
      for_optimizer([&](std::size_t parameter, std::byte* memory, const std::string& name) {
        state.tensors.push_back(parameters_.cut(parameter, memory, name));
      });
    }
    for (Stored& stored : parameters_.stored_beside()) {
      state.tensors.push_back(std::move(stored));
    }
    return state;
  }

  std::vector<Stored> values() const { return parameters_.stored(); }

  void finish() {
    if (finished_) {
      return;
    }
    finished_ = true;
    if (!replica_ && workers_.size() > 1) {
      lay_out(agreed_order(traced_));
    }
    if (program_.valid()) {
      end_rounds(options_.steps && steps_ < *options_.steps);
    }
  }

  double lr() const {
    return std::visit(
               [](const auto& config) {
                 if constexpr (requires { config.lr; }) {
                   return config.lr;
                 } else {
                   return 1.0;
                 }
               },
               optimizer_) *
           (replica_ ? replica_->lr_factor() : rate()(0));
  }
  double samples() const { return static_cast<double>(steps_) * samples_per_step(); }

  std::vector<comm::Exchanged> exchanges() {
    return workers_.run([&](comm::Engine&) -> Task<std::vector<comm::Exchanged>> {
      co_return ledger_ ? ledger_->exchanged() : std::vector<comm::Exchanged>();
    });
  }

  Totals totals() {
    Totals totals;
    totals.steps = steps_ - first_;
    totals.skipped = skipped_;
    totals.waited = std::chrono::duration_cast<Seconds>(waited_);
    comm::LedgerTotals ledger;
    totals.workers = workers_.run([&](comm::Engine& engine) -> Task<std::size_t> {
      ledger = ledger_ ? ledger_->totals() : comm::LedgerTotals{};
      std::size_t alive = 0;
      for (std::uint32_t r = 0; r < engine.size(); ++r) {
        alive += engine.lost(Rank{r}) ? 0 : 1;
      }
      co_return alive;
    });
    totals.void_rounds = ledger.voids;
    totals.stale_fraction = ledger.stale_fraction();
    totals.bytes = ledger.bytes;
    totals.model_copies = copies_;
    return totals;
  }

 private:
  double samples_per_step() const { return options_.batch * static_cast<double>(workers_.size()); }
  LearningRate rate() const {
    return options_.learning_rate ? options_.learning_rate : constant_rate();
  }

  std::string description() const {
    return fmt::format(
        "algorithm {}\nschedule {}\ngroup size {}\npeers {}\naveraging {}\nsync period {}\nmodel "
        "sync {}\ntrigger {}\nage bound {}\nsteps "
        "{}\nbucket {}\noverlap {}\ngradient at mixed {}\nbf16 {}\nweigh samples {}\nseed "
        "{}\nfirst "
        "step {}\norder {}\n{}",
        options_.algorithm, plan_.schedule_name, options_.group_size.value_or(0), options_.peers,
        options_.averaging, options_.sync_period.value_or(0), options_.model_sync, options_.trigger,
        options_.age_bound.value_or(0), options_.steps.value_or(0), options_.bucket_bytes,
        options_.overlap, options_.gradient_at_mixed, options_.bf16, options_.weigh_samples,
        options_.seed, steps_, fmt::join(options_.order, " "), parameters_.description());
  }

  // `early`: the others would wait for steps that do not come, so this worker leaves.
  void end_rounds(bool early) {
    early ? desk_.say_given_up() : desk_.say_finished();
    const auto end = [this] { program_.wait(); };
    try {
      waited_ += desk_.serve_to_the_end();
    } catch (const Error& e) {
      end();
      if (!early || e.code() != ErrorCode::Cancelled) {
        throw;
      }
    } catch (...) {
      end();
      throw;
    }
    end();
  }

  void make_fused(std::size_t elements) {
    std::visit(
        [&](const auto& config) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(config)>, TorchOptimizer>) {
            fused_ = std::make_unique<FusedOptimizer>(Fused(config), parameters_.type(), elements);
          }
        },
        optimizer_);
  }

  // Each part of a fused optimizer's memory, with its name in a state.
  void for_optimizer(const std::function<void(std::size_t, std::byte*, const std::string&)>& each) {
    for (const FusedOptimizer::State& kind :
         fused_ ? fused_->state() : std::vector<FusedOptimizer::State>()) {
      for (std::size_t p = 0; p < parameters_.facts().size(); ++p) {
        each(p, kind.values.blob.data,
             fmt::format("optimizer/{}/{}", kind.name, parameters_.facts()[p].name));
      }
    }
  }

  // Before the first step, when everything lies where it will.
  void take_up(const State& state) {
    if (state.order.empty()) {
      return;  // nobody had taken a step
    }
    parameters_.restore_masters(state);
    for_optimizer([&](std::size_t parameter, std::byte* memory, const std::string& name) {
      parameters_.paste(parameter, memory, state, name);
    });
    std::vector<std::int64_t> taken;
    for (const ParameterFacts& parameter : parameters_.facts()) {
      const auto found = state.taken.find(parameter.name);
      require(found != state.taken.end(), "the checkpoint has no number of steps of {}",
              parameter.name);
      taken.push_back(found->second);
    }
    replica_->resume(state.step, std::move(taken), state.previous_norm, state.push_weight);
  }

  // As rank 0 has it; parameters that had no gradient come last.
  std::vector<std::size_t> agreed_order(std::vector<std::size_t> order) {
    std::vector<bool> in(parameters_.facts().size(), false);
    for (const std::size_t parameter : order) {
      in[parameter] = true;
    }
    for (const std::size_t parameter : last_first(in.size())) {
      if (!in[parameter]) {
        order.push_back(parameter);
      }
    }
    assembly_.broadcast(std::as_writable_bytes(std::span(order)));
    return order;
  }

  void lay_out(const std::vector<std::size_t>& order) {
    const std::size_t size = comm::size_of(parameters_.type());
    layout_.emplace(parameters_.facts(), order,
                    std::max<std::size_t>(1, options_.bucket_bytes / size));
    parameters_.lay_out(*layout_);
    if (fused_) {
      make_fused(layout_->elements());
    }
    ReplicaOptions options;
    options.algorithm = plan_.algorithm;
    options.type = parameters_.type();
    options.overlap = options_.overlap;
    options.clip = options_.clip;
    options.clip_norm = options_.clip_norm;
    options.non_finite = options_.non_finite;
    options.learning_rate = rate();
    options.batch = options_.batch;
    options.samples_per_step = samples_per_step();
    options.weigh_samples = options_.weigh_samples;
    options.rank = workers_.rank();
    replica_.emplace(desk_, workers_, *layout_, parameters_.facts(), groups_, parameters_.flat(),
                     fused_.get(), parameters_, options);
    missing_.resize(layout_->buckets());
    if (options_.resume) {
      take_up(*options_.resume);
      options_.resume.reset();
    }
    if (plan_.algorithm != nullptr) {
      start(size);
    }
  }

  void start(std::size_t size) {
    const bool held = plan_.algorithm->payload == topology::Payload::HeldModel;
    ledger_.emplace(workers_.rank(), held,
                    options_.ledger.empty()
                        ? comm::Ledger::Sink()
                        : comm::ledger_file(options_.ledger, options_.ledger_lost));
    comm::StepOptions steps = plan_.steps;
    steps.shape = {parameters_.type(), replica_->elements(), false};
    steps.first = first_;
    steps.push_weight = replica_->last_push_weight();
    steps.series = series_;
    steps.ledger = &*ledger_;
    for (const std::size_t end : layout_->ends()) {
      steps.parts.push_back(end * size);
    }
    steps.parts.back() = steps.shape.bytes();
    program_ = workers_.start([this, steps](comm::Engine& engine) { return train(engine, steps); });
    desk_.serve_until(first_);
  }

  Task<void> train(comm::Engine& engine, comm::StepOptions steps) {
    desk_.open(engine);
    std::exception_ptr error;
    try {
      const comm::StepReport report = co_await comm::take_steps(engine, *replica_, steps);
      copies_ = report.copies;
    } catch (...) {
      error = std::current_exception();
    }
    desk_.close(error);
  }

  // --- A step ---

  StepReport take_step(const Batch& batch, const std::function<void()>& compute) {
    require(!finished_, "a step after the end");
    require(!options_.steps || steps_ < *options_.steps, "a step after the last of {}",
            options_.steps.value_or(0));
    const bool traces = !replica_;
    traced_.clear();
    hook_error_ = nullptr;
    timing_ = {};
    if (!traces) {
      if (options_.gradient_at_mixed && program_.valid()) {
        desk_.begin(steps_);
      }
      begin_buckets(batch);
    }
    hears_ = true;
    lap();
    try {
      compute();
    } catch (...) {
      hears_ = false;
      throw;
    }
    hears_ = false;
    if (hook_error_) {
      std::rethrow_exception(hook_error_);
    }
    if (traces) {
      lay_out(agreed_order(traced_));
      begin_buckets(batch);
      lap();
    }
    while (next_bucket_ < layout_->buckets()) {
      ready_next_bucket();
    }
    replica_->computed();
    return end_step();
  }

  StepReport end_step() {
    StepReport report;
    Duration waited = replica_->take_waited();
    if (program_.valid()) {
      desk_.say_computed(steps_);
      if (replica_->is_ahead()) {
        desk_.throw_if_failed();
      } else {
        waited += desk_.serve_until(steps_ + 1);
      }
    }
    ++steps_;
    accumulates_ = false;
    skipped_ += replica_->skipped() ? 1 : 0;
    waited_ += waited;
    if (options_.model_sync > 0 && steps_ % options_.model_sync == 0) {
      sync_models();
    }
    report.skipped = replica_->skipped();
    report.gradient_norm = replica_->gradient_norm();
    report.waited = std::chrono::duration_cast<Seconds>(waited);
    return report;
  }

  void begin_buckets(const Batch& batch) {
    replica_->begin_step(steps_, batch.samples.value_or(options_.batch), batch.gradient_scale);
    next_bucket_ = 0;
    for (std::size_t bucket = 0; bucket < missing_.size(); ++bucket) {
      missing_[bucket] = layout_->places_of(bucket).size();
    }
    bucket_of_.resize(parameters_.facts().size());
    for (const FlatLayout::Place& place : layout_->places()) {
      bucket_of_[place.parameter] = place.bucket;
    }
    counted_.assign(bucket_of_.size(), false);
  }

  // In the backward pass. What goes wrong is thrown after it.
  void on_gradient(std::size_t parameter) {
    if (!hears_) {
      return;
    }
    if (!replica_) {
      traced_.push_back(parameter);
      return;
    }
    if (counted_[parameter]) {
      return;
    }
    counted_[parameter] = true;
    --missing_[bucket_of_[parameter]];
    while (next_bucket_ < missing_.size() && missing_[next_bucket_] == 0 && !hook_error_) {
      try {
        ready_next_bucket();
      } catch (...) {
        hook_error_ = std::current_exception();
      }
    }
  }

  void ready_next_bucket() {
    timing_.backward.push_back(lap());
    replica_->bucket_ready(next_bucket_++);
    lap();
  }

  // Since it was last asked.
  Seconds lap() {
    const WallTime now = std::chrono::steady_clock::now();
    return Seconds(now - std::exchange(lap_, now));
  }

  // --- Average models ---

  bool is_eager() const {
    return plan_.algorithm != nullptr && topology::is_eager(*plan_.algorithm);
  }

  void sync_models() {
    const WallTime begin = std::chrono::steady_clock::now();
    const ModelAverage average(assembly_, workers_, parameters_);
    average.take_over();
    waited_ += std::chrono::steady_clock::now() - begin;
  }

  comm::Workers& workers_;
  Options options_;
  Optimizer optimizer_;
  std::uint64_t series_;
  Assembly assembly_;
  ModuleParameters parameters_;
  std::vector<ParameterGroup> groups_;
  PlanOfRounds plan_;
  std::unique_ptr<FusedOptimizer> fused_;
  std::optional<FlatLayout> layout_;
  std::optional<comm::Ledger> ledger_;
  Desk desk_;
  std::optional<Replica> replica_;
  std::future<void> program_;
  std::size_t copies_ = 0;

  std::uint64_t steps_ = 0;
  std::uint64_t first_ = 0;  // step of this run
  std::uint64_t skipped_ = 0;
  Duration waited_{0};
  bool finished_ = false;
  bool emulates_ = false;
  bool hears_ = false;        // gradients are those of a step
  bool accumulates_ = false;  // gradients of a coming step are there
  std::vector<std::size_t> traced_;
  std::size_t next_bucket_ = 0;
  std::vector<std::size_t> missing_;    // gradients, by bucket
  std::vector<std::size_t> bucket_of_;  // by parameter
  std::vector<bool> counted_;           // by parameter
  std::exception_ptr hook_error_;
  Timing timing_;
  WallTime lap_{};
};

DataParallel::DataParallel(torch::nn::Module& model, comm::Workers& workers, Options options,
                           Optimizer optimizer)
    : impl_(std::make_unique<Impl>(model, workers, std::move(options), std::move(optimizer))) {}
DataParallel::~DataParallel() = default;

StepReport DataParallel::step(const std::function<at::Tensor()>& loss, const Batch& batch) {
  return impl_->step(loss, batch);
}
void DataParallel::accumulate(const std::function<at::Tensor()>& loss) { impl_->accumulate(loss); }
StepReport DataParallel::emulate(
    const std::function<void(const std::function<void(std::size_t)>& ready)>& compute) {
  return impl_->emulate(compute);
}
std::size_t DataParallel::buckets() const { return impl_->buckets(); }
std::vector<std::size_t> DataParallel::bucket_ends() const { return impl_->bucket_ends(); }
const Timing& DataParallel::timing() const { return impl_->timing(); }
Consensus DataParallel::with_consensus_model(const std::function<void()>& look) {
  return impl_->with_consensus_model(look);
}
void DataParallel::at_rest(const std::function<void()>& look) { impl_->at_rest(look); }
State DataParallel::state() const { return impl_->state(); }
std::vector<Stored> DataParallel::values() const { return impl_->values(); }
void DataParallel::finish() { impl_->finish(); }
std::vector<comm::Exchanged> DataParallel::exchanges() const { return impl_->exchanges(); }
double DataParallel::lr() const { return impl_->lr(); }
double DataParallel::samples() const { return impl_->samples(); }
Totals DataParallel::totals() const { return impl_->totals(); }

}  // namespace starling::train
