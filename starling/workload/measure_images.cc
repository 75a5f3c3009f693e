#include "starling/workload/measure_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/base/compute_times.h"
#include "starling/base/error.h"
#include "starling/base/interval.h"
#include "starling/base/time_words.h"
#include "starling/comm/connect.h"
#include "starling/model/plan.h"
#include "starling/model/profile.h"
#include "starling/train/data_parallel.h"
#include "starling/train/plan_of_rounds.h"
#include "starling/workload/batches.h"
#include "starling/workload/emulation.h"
#include "starling/workload/exchange_times.h"
#include "starling/workload/image_data.h"
#include "starling/workload/image_loss.h"
#include "starling/workload/image_models.h"
#include "starling/workload/image_tensors.h"
#include "starling/workload/images_training.h"
#include "starling/workload/meeting.h"
#include "starling/workload/torch_setup.h"

namespace starling::workload {
namespace {

using Clock = std::chrono::steady_clock;
using model::Pattern;
using model::Profile;

constexpr std::uint64_t kWarmUp = 10;
constexpr std::uint64_t kSteps = 40;
constexpr std::uint64_t kUpdates = 10;  // steps
// Pieces whose backward passes are told apart.
constexpr std::size_t kPieces = 32;
// Of patterns that are predicted for comparison only.
constexpr std::size_t kFewRepetitions = 3;

// One step of one worker.
struct Measured {
  double forward = 0;
  std::vector<double> backward;
  double update = 0;  // and whatever else a step does on this worker's own
};

class Measurement {
 public:
  Measurement(comm::Workers& workers, const ImagesOptions& typed)
      : workers_(workers),
        rank_(workers.rank()),
        typed_(typed),
        options_(settle(typed, workers.size())),
        meetings_(workers),
        data_(load_images(options_.data, options_.data_folder)),
        batches_({.samples = data_.train.count,
                  .workers = static_cast<std::uint32_t>(workers.size()),
                  .worker = rank_,
                  .batch = static_cast<std::uint32_t>(options_.batch),
                  .seed = seed()}) {
    use_threads(static_cast<int>(options_.threads));
    if (!options_.emulate_compute.empty()) {
      emulated_.emplace(options_.emulate_compute, seed());
    }
  }

  void run() {
    profile_.workers = static_cast<std::uint32_t>(workers_.size());
    profile_.per_node = train::workers_per_node(workers_);
    profile_.launcher = workers_.facts().launcher;
    profile_.transport = workers_.facts().transport;
    profile_.model = options_.model;
    candidates_ = model::candidates(profile_.workers, profile_.per_node);
    measure_computation();
    measure_updates();
    measure_exchanges();
    if (options_.verify > 0) {
      verify();
    }
    if (meetings_.leads()) {
      model::write_profile(profile_, options_.measure);
    }
    meetings_.told_by_leader([] { return std::string("written"); });
  }

 private:
  std::uint64_t seed() const { return static_cast<std::uint64_t>(options_.seed); }
  void say(const std::string& what) {
    if (meetings_.leads()) {
      fmt::print(stderr, "measuring {}\n", what);
    }
  }
  std::unique_ptr<ImageModel> make_model() {
    const Images& images = data_.train;
    return make_image_model(options_.model,
                            {.channels = images.channels,
                             .height = images.height,
                             .width = images.width,
                             .classes = images.classes},
                            seed());
  }

  Measured take_step(ImageModel& network, train::DataParallel& replica, std::uint64_t step) {
    const ComputeTime time =
        emulated_ ? emulated_->at(rank_, Step{static_cast<std::int64_t>(step)}) : ComputeTime{};
    const WallTime begin = Clock::now();
    const train::StepReport report =
        emulated_ ? emulate_step(replica, Duration(0), time) : replica.step([&] {
          return image_loss(network, image_batch(data_.train, batches_.batch(step)));
        });
    const double took = seconds(Clock::now() - begin);
    Measured measured;
    measured.forward = emulated_ ? seconds(time.forward) : replica.timing().forward.count();
    double all = measured.forward;
    for (const Seconds part : replica.timing().backward) {
      measured.backward.push_back(part.count());
    }
    if (emulated_ && !measured.backward.empty()) {
      measured.backward.front() = std::max(0.0, measured.backward.front() - measured.forward);
    }
    for (const double part : measured.backward) {
      all += part;
    }
    measured.update = std::max(0.0, took - all - report.waited.count());
    return measured;
  }

  // Of a run with this algorithm; its optimizer is the algorithm's, unless one was typed.
  ImagesOptions options_with(std::string_view algorithm, std::size_t bucket_bytes) const {
    ImagesOptions options = typed_;
    options.algorithm = algorithm;
    options.bucket_bytes = static_cast<std::int64_t>(bucket_bytes);
    return options;
  }
  ImagesOptions options_with(const model::Candidate& candidate, std::size_t bucket_bytes) const {
    ImagesOptions options = options_with(candidate.algorithm->name, bucket_bytes);
    options.schedule = candidate.pattern.schedule;
    options.group_size = candidate.pattern.group_size;
    options.peers = candidate.pattern.peers;
    options.sync_period = candidate.sync_period;
    return options;
  }

  std::unique_ptr<train::DataParallel> make_replica(ImageModel& network,
                                                    const ImagesOptions& unsettled,
                                                    std::uint64_t steps) {
    const ImagesOptions options = settle(unsettled, workers_.size());
    return std::make_unique<train::DataParallel>(network.module(), workers_,
                                                 training_options(options, workers_.size(), steps),
                                                 make_optimizer(options));
  }

  // After a warm-up.
  std::vector<Measured> take_steps(const ImagesOptions& options, std::uint64_t steps) {
    const auto network = make_model();
    const auto replica = make_replica(*network, options, kWarmUp + steps);
    std::vector<Measured> measured;
    for (std::uint64_t t = 0; t < kWarmUp + steps; ++t) {
      const Measured step = take_step(*network, *replica, t);
      if (t >= kWarmUp) {
        measured.push_back(step);
      }
    }
    replica->finish();
    ends_ = replica->bucket_ends();
    profile_.parameters = count_parameters(*network);
    return measured;
  }

  void measure_computation() {
    const auto steps = options_.steps ? static_cast<std::uint64_t>(*options_.steps) : kSteps;
    say(fmt::format("computation: {} steps without exchange", steps));
    const std::size_t bytes = count_parameters(*make_model()) * sizeof(float);
    const std::vector<Measured> own =
        take_steps(options_with("alone", std::max<std::size_t>(4096, bytes / kPieces)), steps);
    profile_.ends = ends_;
    profile_.bytes = ends_.back();
    std::vector<double> record;
    std::vector<double> pieces(ends_.size());
    for (const Measured& step : own) {
      double backward = 0;
      for (std::size_t k = 0; k < pieces.size(); ++k) {
        pieces[k] += step.backward[k];
        backward += step.backward[k];
      }
      record.push_back(step.forward);
      record.push_back(backward);
    }
    record.insert(record.end(), pieces.begin(), pieces.end());
    profile_.shares.assign(pieces.size(), 0);
    profile_.compute.assign(workers_.size(), {});
    meetings_.meet(record, 0, [&](const Meetings::Records& records) {
      for (std::size_t r = 0; r < records.size(); ++r) {
        require(records[r].has_value(), "worker {} was lost", r);
        take_in(*records[r], own.size(), profile_.compute[r]);
      }
      return Meetings::Answer();
    });
  }

  // What one worker measured of its computation.
  void take_in(const std::vector<double>& record, std::size_t steps,
               std::vector<ComputeTime>& compute) {
    for (std::size_t t = 0; t < steps; ++t) {
      compute.push_back({duration(record[2 * t]), duration(record[2 * t + 1])});
    }
    double all = 0;
    const std::size_t first = 2 * steps;
    for (std::size_t k = 0; k < profile_.shares.size(); ++k) {
      all += record[first + k];
    }
    for (std::size_t k = 0; k < profile_.shares.size(); ++k) {
      const double share =
          all > 0 ? record[first + k] / all : 1.0 / static_cast<double>(profile_.shares.size());
      profile_.shares[k] += share / static_cast<double>(workers_.size());
    }
  }

  // With real exchanges: updates beside other people's.
  double measure_update(std::string_view title) {
    say(fmt::format("updates: {}", title));
    const auto candidate =
        std::find_if(candidates_.begin(), candidates_.end(),
                     [&](const model::Candidate& one) { return model::title(one) == title; });
    check(candidate != candidates_.end(), "no candidate '{}'", title);
    const auto bucket_bytes = static_cast<std::size_t>(options_.bucket_bytes);
    double sum = 0;
    for (const Measured& step : take_steps(options_with(*candidate, bucket_bytes), kUpdates)) {
      sum += step.update;
    }
    return mean_of(meetings_.everyones(sum / static_cast<double>(kUpdates)));
  }

  // In pairs, where there is a choice.
  void measure_updates() {
    profile_.updates = {.gradients = measure_update("all-reduce"),
                        .parameters = measure_update("wagma, groups of 2"),
                        .behind = measure_update("dadam, exponential"),
                        .held = measure_update("starling, groups of 2")};
  }

  void measure_exchanges() {
    const auto list = model::patterns(candidates_);
    ExchangeTimes times(workers_, meetings_, profile_.bytes);
    for (std::size_t i = 0; i < list.size(); ++i) {
      say(fmt::format("exchanges: {}{} ({} of {})", list[i].schedule,
                      list[i].group_size ? fmt::format(" of {}", *list[i].group_size) : "", i + 1,
                      list.size()));
      measure_pattern(times, list[i]);
    }
    say("links");
    const Rank first{0};
    std::optional<Rank> near;
    std::optional<Rank> far;
    for (const Rank rank : workers_.everyone()) {
      if (rank != first && !near && workers_.node_of(rank) == workers_.node_of(first)) {
        near = rank;
      }
      if (!far && workers_.node_of(rank) != workers_.node_of(first)) {
        far = rank;
      }
    }
    profile_.local = times.link(first, near.value_or(far.value_or(first)));
    profile_.network = far ? times.link(first, *far) : profile_.local;
  }

  // Whether something that may be recommended exchanges so.
  bool is_advisable(const Pattern& pattern) const {
    return std::any_of(candidates_.begin(), candidates_.end(), [&](const model::Candidate& one) {
      return one.advisable && one.pattern == pattern;
    });
  }

  void measure_pattern(ExchangeTimes& times, const Pattern& pattern) {
    const auto schedule =
        topology::make_schedule(pattern.schedule, {.workers = profile_.workers,
                                                   .per_node = profile_.per_node,
                                                   .group_size = pattern.group_size,
                                                   .peers = pattern.peers,
                                                   .seed = seed()});
    ExchangeTimes::Effort effort;
    if (!is_advisable(pattern)) {
      effort.fewest = kFewRepetitions;
    }
    const std::int64_t phases =
        model::measured_phases(pattern, profile_.workers, profile_.per_node);
    for (std::int64_t phase = 0; phase < phases; ++phase) {
      model::ExchangePhase measured{.pattern = pattern, .phase = phase, .samples = {}};
      for (const std::size_t part : {16, 4, 1}) {
        const std::size_t bytes = profile_.bytes / part / sizeof(float) * sizeof(float);
        if (bytes > 0) {
          measured.samples.push_back(
              {bytes, times.measure(pattern, *schedule, Step{phase}, bytes, effort)});
        }
      }
      profile_.exchanges.push_back(std::move(measured));
    }
  }

  // --- Training for a while with the most promising ---

  void verify() {
    const std::string chosen = meetings_.told_by_leader([&] { return choose(); });
    std::istringstream lines(chosen);
    std::size_t index = 0;
    std::size_t bucket_bytes = 0;
    while (lines >> index >> bucket_bytes) {
      say(fmt::format("steps of {}: {}", model::title(candidates_[index]), options_.verify));
      profile_.trained.push_back(train_with(candidates_[index], bucket_bytes));
    }
  }

  // On the leader: which of them, and in which buckets, one a line.
  std::string choose() {
    model::Question question;
    if (options_.verify_bucket_bytes) {
      question.bucket_bytes = static_cast<std::size_t>(*options_.verify_bucket_bytes);
    }
    const model::Plan plan = model::make_plan(profile_, question);
    std::string text;
    std::int64_t left = options_.verify_top;
    for (std::size_t i = 0; i < plan.choices.size(); ++i) {
      const model::Choice& choice = plan.choices[i];
      if (!choice.candidate.advisable || (i != plan.all_reduce && left-- <= 0)) {
        continue;
      }
      const auto same = [&](const model::Candidate& candidate) {
        return model::title(candidate) == model::title(choice.candidate);
      };
      text += fmt::format(
          "{} {}\n",
          std::find_if(candidates_.begin(), candidates_.end(), same) - candidates_.begin(),
          choice.bucket_bytes);
    }
    return text;
  }

  model::Trained train_with(const model::Candidate& candidate, std::size_t bucket_bytes) {
    const auto steps = static_cast<std::uint64_t>(options_.verify);
    const auto network = make_model();
    const auto replica =
        make_replica(*network, options_with(candidate, bucket_bytes), kWarmUp + steps);
    for (std::uint64_t t = 0; t < kWarmUp; ++t) {
      take_step(*network, *replica, t);
    }
    meetings_.everyones(0);  // everybody begins together
    std::vector<double> ends;
    const WallTime begin = Clock::now();
    for (std::uint64_t t = kWarmUp; t < kWarmUp + steps; ++t) {
      take_step(*network, *replica, t);
      ends.push_back(seconds(Clock::now() - begin));
    }
    replica->finish();
    const std::vector<double> took = meetings_.everyones(ends.back());
    model::Trained trained{.algorithm = std::string(candidate.algorithm->name),
                           .pattern = candidate.pattern,
                           .sync_period = candidate.sync_period,
                           .bucket_bytes = bucket_bytes,
                           .steps = steps};
    trained.step = *std::max_element(took.begin(), took.end()) / static_cast<double>(steps);
    trained.interval = half_interval(ends);
    return trained;
  }

  // 95 %, of the mean step, by the means of ten stretches.
  static double half_interval(const std::vector<double>& ends) {
    constexpr std::size_t kStretches = 10;
    if (ends.size() < 2 * kStretches) {
      return 0;
    }
    const std::size_t length = ends.size() / kStretches;
    std::vector<double> means;
    for (std::size_t i = 0; i < kStretches; ++i) {
      const double from = i == 0 ? 0 : ends[i * length - 1];
      means.push_back((ends[(i + 1) * length - 1] - from) / static_cast<double>(length));
    }
    const Interval around = interval_of(means).value();
    return (around.high - around.low) / 2;
  }

  comm::Workers& workers_;
  const Rank rank_;
  const ImagesOptions typed_;
  const ImagesOptions options_;  // settled
  Meetings meetings_;
  ImageSet data_;
  Batches batches_;
  std::optional<ComputeTimes> emulated_;
  std::vector<std::size_t> ends_;  // of the buckets of the last steps
  std::vector<model::Candidate> candidates_;
  Profile profile_;
};

}  // namespace

void measure_images(const ImagesOptions& typed) {
  keep_freed_memory();
  comm::ConnectOptions meeting;
  meeting.configuration = text_of(typed);
  const auto workers = comm::connect(meeting);
  require(workers->size() >= 2, "one worker: there is nothing to decide, it trains alone");
  Measurement(*workers, typed).run();
}

}  // namespace starling::workload
