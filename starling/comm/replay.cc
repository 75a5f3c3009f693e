#include "starling/comm/replay.h"

#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "starling/base/error.h"
#include "starling/comm/arithmetic.h"

namespace starling::comm {
namespace {

using Model = std::vector<float>;

ConstBlob blob_of(const Model& model) {
  const auto bytes = std::as_bytes(std::span(model));
  return {bytes.data(), bytes.size()};
}

Blob blob_of(Model& model) {
  const auto bytes = std::as_writable_bytes(std::span(model));
  return {bytes.data(), bytes.size()};
}

Model sum_of(const std::vector<const Model*>& contributions) {
  Model sum(contributions.front()->size());
  std::vector<ConstBlob> sources;
  for (const Model* model : contributions) {
    sources.push_back(blob_of(*model));
  }
  KernelArithmetic().sum(Type::Float32, blob_of(sum), sources);
  return sum;
}

// into = weights applied to the sources.
void mix_into(Model& into, const std::vector<const Model*>& sources,
              const std::vector<double>& weights) {
  std::vector<ConstBlob> blobs;
  for (const Model* model : sources) {
    blobs.push_back(blob_of(*model));
  }
  KernelArithmetic().mix(Type::Float32, blob_of(into), blobs, weights);
}

// A worker of the run, advanced as far as what it needs of the others allows.
class Worker {
 public:
  virtual ~Worker() = default;
  // Whether anything could be done.
  virtual bool advance() = 0;
  virtual bool done() const = 0;
  virtual const Model& model() const = 0;
};

// What the workers share.
struct Shared {
  const ReplayOptions& options;
  const ReplayModel& model;
  // What was contributed: published snapshots by (worker, step, 0), held models by (worker,
  // version, epoch): a version may have been run twice, if it had ended only for workers that left.
  std::map<std::tuple<Rank, std::int64_t, Epoch>, Model> contributions{};
  // Of held models: how many updates were in what a worker contributed to a version.
  std::map<std::pair<Rank, Version>, std::map<Epoch, std::int64_t>> labels{};

  Model initial(Rank rank) const {
    Model values(model.elements);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = model.initial(rank, i);
    }
    return values;
  }
  // The sum of a round, or nothing while a contribution to it is unknown.
  std::optional<Model> sum(const Outcome& outcome) const {
    require(outcome.form == Form::Sum,
            "version {} was not averaged in a group: it cannot be replayed", outcome.version);
    std::vector<const Model*> parts;
    for (std::size_t i = 0; i < outcome.members.size(); ++i) {
      const std::int64_t which =
          options.held ? static_cast<std::int64_t>(outcome.version) : outcome.steps[i].value;
      const Epoch epoch = options.held ? outcome.epoch : 0;
      const auto known = contributions.find({outcome.members[i], which, epoch});
      if (known == contributions.end()) {
        return std::nullopt;
      }
      parts.push_back(&known->second);
    }
    return sum_of(parts);
  }
};

class Publisher final : public Worker {
 public:
  Publisher(Rank rank, Shared& shared) : rank_(rank), shared_(shared), own_(shared.initial(rank)) {
    shared_.contributions[{rank, kInitial.value, 0}] = own_;
  }
  void add(const Outcome& outcome) { rounds_[outcome.version] = outcome; }
  void add(const PickUp& pick_up) { pick_ups_.push_back(pick_up); }

  bool advance() override {
    bool moved = false;
    // The last step may have been published, but never picked up.
    while (true) {
      const Step step{static_cast<std::int64_t>(next_)};
      if (!updated_) {
        Model at = own_;
        shared_.model.update(rank_, step, at, own_);
        shared_.contributions[{rank_, step.value, 0}] = own_;
        updated_ = moved = true;
      }
      if (next_ == pick_ups_.size() || !pick_up(step)) {
        return moved;
      }
      ++next_;
      updated_ = false;
      moved = true;
    }
  }
  bool done() const override { return next_ == pick_ups_.size(); }
  const Model& model() const override { return last_; }

 private:
  bool pick_up(Step step) {
    const PickUp& row = pick_ups_[next_];
    if (row.version) {
      const auto round = rounds_.find(*row.version);
      require(round != rounds_.end(), "worker {} used version {}, of which it has no row", rank_,
              *row.version);
      const std::optional<Model> sum = shared_.sum(round->second);
      if (!sum) {
        return false;
      }
      const Weights weights = weights_of(shared_.options.rule, round->second, step);
      std::vector<const Model*> sources{&*sum};
      std::vector<double> shares{weights.of_result};
      if (weights.of_own != 0) {
        sources.push_back(&own_);
        shares.push_back(weights.of_own);
      }
      mix_into(own_, sources, shares);
    }
    last_ = own_;
    return true;
  }

  Rank rank_;
  Shared& shared_;
  Model own_;
  Model last_;  // after the last pick-up
  std::map<Version, Outcome> rounds_;
  std::vector<PickUp> pick_ups_;
  std::size_t next_ = 0;
  bool updated_ = false;
};

class Holder final : public Worker {
 public:
  Holder(Rank rank, Shared& shared)
      : rank_(rank), shared_(shared), y_(shared.initial(rank)), x_(y_) {}
  void add(const Outcome& outcome) { rounds_.push_back(outcome); }
  void add(const PickUp&) { ++steps_; }

  bool advance() override {
    bool moved = false;
    for (; next_ < rounds_.size(); ++next_) {
      const Outcome& round = rounds_[next_];
      if (!begun_) {
        begin(round.version);
        moved = true;
        if (!round.is_void) {
          before_ = y_;
          update_to(round.own_at_end.value);
          begun_ = true;
        }
      }
      if (!round.is_void && !end(round)) {
        return moved;
      }
      moved = true;
      begun_ = false;
    }
    if (!finished_) {
      // What was still contributed when this worker ended.
      const Version after = rounds_.empty() ? 0 : rounds_.back().version + 1;
      begin(after);
      update_to(steps_);
      finished_ = moved = true;
    }
    return moved;
  }
  bool done() const override { return finished_; }
  const Model& model() const override { return x_; }

 private:
  // Contributes to `version` what it did, if it did.
  void begin(Version version) {
    for (const auto& [epoch, updates] : shared_.labels[{rank_, version}]) {
      update_to(updates);
      shared_.contributions[{rank_, static_cast<std::int64_t>(version), epoch}] = y_;
    }
  }
  void update_to(std::int64_t updates) {
    for (; updates_ < updates; ++updates_) {
      shared_.model.update(rank_, Step{updates_}, x_, y_);
      x_ = y_;
    }
  }
  bool end(const Outcome& round) {
    const std::optional<Model> sum = shared_.sum(round);
    if (!sum) {
      return false;
    }
    const Weights weights = weights_of(Rule::Mean, round, round.own);
    std::vector<const Model*> sources{&*sum};
    std::vector<double> shares{weights.of_result};
    if (round.own_at_end > round.own) {
      sources.push_back(&y_);
      sources.push_back(&before_);
      shares.push_back(1);
      shares.push_back(weights.of_own - 1);
    } else if (weights.of_own != 0) {
      sources.push_back(&y_);
      shares.push_back(weights.of_own);
    }
    mix_into(y_, sources, shares);
    return true;
  }

  Rank rank_;
  Shared& shared_;
  Model y_;
  Model x_;
  Model before_;
  std::vector<Outcome> rounds_;
  std::int64_t steps_ = 0;
  std::int64_t updates_ = 0;
  std::size_t next_ = 0;
  bool begun_ = false;
  bool finished_ = false;
};

// Sends gradients: what it could not contribute is in the next contribution.
class Accumulator final : public Worker {
 public:
  Accumulator(Rank rank, Shared& shared)
      : rank_(rank), shared_(shared), own_(shared.initial(rank)) {
    const Model nothing(own_.size());
    shared_.contributions[{rank, kInitial.value, 0}] = nothing;
    shared_.contributions[{rank, kNothing.value, 0}] = nothing;
  }
  void add(const Outcome& outcome) {
    rounds_[outcome.version] = outcome;
    if (!outcome.is_void) {
      contributed_.insert(outcome.own.value);
    }
  }
  void add(const PickUp& pick_up) { pick_ups_.push_back(pick_up); }

  bool advance() override {
    bool moved = false;
    while (next_ < pick_ups_.size()) {
      const Step step{static_cast<std::int64_t>(next_)};
      if (!computed_) {
        compute(step);
        computed_ = moved = true;
      }
      if (!pick_up(step)) {
        break;
      }
      ++next_;
      computed_ = false;
      moved = true;
    }
    return moved;
  }
  bool done() const override { return next_ == pick_ups_.size(); }
  const Model& model() const override { return own_; }

 private:
  void compute(Step step) {
    gradient_.assign(own_.size(), 0);
    shared_.model.gradient(rank_, step, own_, gradient_);
    Model sent = gradient_;
    if (step.value > 0 && !contributed_.contains(step.value - 1)) {
      sent = sum_of({&gradient_, &shared_.contributions.at({rank_, step.value - 1, 0})});
    }
    shared_.contributions[{rank_, step.value, 0}] = std::move(sent);
  }
  bool pick_up(Step step) {
    if (const std::optional<Version> version = pick_ups_[next_].version) {
      const auto round = rounds_.find(*version);
      require(round != rounds_.end(), "worker {} used version {}, of which it has no row", rank_,
              *version);
      const std::optional<Model> sum = shared_.sum(round->second);
      if (!sum) {
        return false;
      }
      mix_into(gradient_, {&*sum}, {weights_of(Rule::Mean, round->second, step).of_result});
    }
    shared_.model.apply(rank_, step, gradient_, own_);
    return true;
  }

  Rank rank_;
  Shared& shared_;
  Model own_;
  Model gradient_;
  std::map<Version, Outcome> rounds_;
  std::set<std::int64_t> contributed_;
  std::vector<PickUp> pick_ups_;
  std::size_t next_ = 0;
  bool computed_ = false;
};

template <typename Kind>
std::vector<Model> replay_as(std::span<const LedgerRow> ledger, Shared& shared) {
  std::vector<Kind> workers;
  for (std::uint32_t r = 0; r < shared.options.workers; ++r) {
    workers.emplace_back(Rank{r}, shared);
  }
  for (const LedgerRow& row : ledger) {
    std::visit([&](const auto& what) { workers.at(row.worker.index()).add(what); }, row.what);
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (Kind& worker : workers) {
      moved = worker.advance() || moved;
    }
  }
  std::vector<Model> models;
  for (std::uint32_t r = 0; r < workers.size(); ++r) {
    require(workers[r].done(), "the ledger does not hold what worker {} averaged with", r);
    models.push_back(workers[r].model());
  }
  return models;
}

}  // namespace

std::vector<std::vector<float>> replay(std::span<const LedgerRow> ledger,
                                       const ReplayOptions& options, const ReplayModel& model) {
  Shared shared{.options = options, .model = model};
  if (options.gradients) {
    return replay_as<Accumulator>(ledger, shared);
  }
  if (!options.held) {
    return replay_as<Publisher>(ledger, shared);
  }
  for (const LedgerRow& row : ledger) {
    if (const auto* round = std::get_if<Outcome>(&row.what)) {
      for (std::size_t i = 0; i < round->members.size(); ++i) {
        shared.labels[{round->members[i], round->version}][round->epoch] = round->steps[i].value;
      }
    }
  }
  return replay_as<Holder>(ledger, shared);
}

}  // namespace starling::comm
