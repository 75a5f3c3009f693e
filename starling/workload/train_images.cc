#include "starling/workload/train_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "starling/base/compute_times.h"
#include "starling/base/delay.h"
#include "starling/base/error.h"
#include "starling/base/folder_lock.h"
#include "starling/comm/connect.h"
#include "starling/train/data_parallel.h"
#include "starling/train/plan_of_rounds.h"
#include "starling/workload/batches.h"
#include "starling/workload/checkpointing.h"
#include "starling/workload/emulation.h"
#include "starling/workload/exit_code.h"
#include "starling/workload/image_data.h"
#include "starling/workload/image_loss.h"
#include "starling/workload/image_models.h"
#include "starling/workload/image_tensors.h"
#include "starling/workload/images_training.h"
#include "starling/workload/meeting.h"
#include "starling/workload/prediction.h"
#include "starling/workload/progress.h"
#include "starling/workload/resume.h"
#include "starling/workload/run_folder.h"
#include "starling/workload/summary.h"
#include "starling/workload/torch_setup.h"

namespace starling::workload {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// A clock that can be stopped.
class StopWatch {
 public:
  void go() { since_ = Clock::now(); }
  void stop() {
    before_ = time();
    since_.reset();
  }
  void reset() { before_ = Seconds(0); }
  Seconds time() const { return before_ + (since_ ? Seconds(Clock::now() - *since_) : Seconds(0)); }

 private:
  std::optional<WallTime> since_;
  Seconds before_{0};
};

class Training {
 public:
  Training(comm::Workers& workers, ImagesOptions options);
  void run();

 private:
  std::uint64_t model_sync_steps() const;
  bool goes_on_in_place() const;
  fs::path make_folder();
  void begin_files();
  std::shared_ptr<const train::State> take_up();
  std::shared_ptr<const train::State> state_before();
  void take_steps();
  std::uint32_t size() const { return static_cast<std::uint32_t>(workers_.size()); }
  Seconds trained() const { return trained_before_ + watch_.time(); }
  double timed_samples() const { return replica_->samples() - untimed_samples_; }
  void step(std::uint64_t step);
  void begin_timing();
  train::StepReport compute(std::uint64_t step);
  void show_progress(std::uint64_t done, double loss);
  void evaluate_consensus(std::uint64_t step);
  struct Look {
    Score score;
    Seconds time{0};
  };
  Look look_together();
  using Predict = std::function<std::optional<double>(const Predicted&)>;
  std::optional<double> predict(std::vector<std::size_t> bucket_ends, const Predict& by);
  void look_at_profile();
  std::optional<double> predict_from_own_steps();
  std::vector<double> own_record();
  void write_summary();

  comm::Workers& workers_;
  const Rank rank_;
  const ImagesOptions options_;
  const int threads_;
  Meetings meetings_;
  ImageSet data_;
  Batches batches_;
  Delay delay_;
  std::optional<ComputeTimes> emulated_;
  std::optional<ComputeTimes> paced_;
  std::uint64_t steps_;
  std::optional<Resumption> resumption_;
  std::uint64_t first_ = 0;    // step of this run
  Seconds trained_before_{0};  // by the parts of the run before
  std::optional<FolderLock> lock_;
  fs::path folder_;
  std::optional<Metrics> metrics_;
  std::atomic<bool> ledger_lost_ = false;
  std::unique_ptr<ImageModel> model_;
  std::optional<train::DataParallel> replica_;
  std::optional<Checkpointing> checkpointing_;
  std::optional<Progress> progress_;
  StepStatistics statistics_;
  OwnTimes own_times_;
  StopWatch watch_;
  double untimed_samples_ = 0;  // of the warm-up
  Seconds waited_before_{0};
  std::vector<Evaluation> evaluations_;
  std::optional<double> predicted_;  // seconds per step, by the profile
};

BatchOptions batch_options(const ImagesOptions& options, const comm::Workers& workers,
                           std::size_t samples) {
  return {.samples = samples,
          .workers = static_cast<std::uint32_t>(workers.size()),
          .worker = workers.rank(),
          .batch = static_cast<std::uint32_t>(options.batch),
          .seed = static_cast<std::uint64_t>(options.seed)};
}

ordered_json config_of(const ImagesOptions& options, const comm::Workers& workers,
                       std::uint64_t steps, int threads) {
  ordered_json config = json_of(options);
  config["steps"] = steps;
  config["workers"] = workers.size();
  config["threads"] = threads;
  config["launcher"] = workers.facts().launcher;
  config["transport"] = workers.facts().transport;
  config["hosts"] = workers.facts().host_names;
  return config;
}

Training::Training(comm::Workers& workers, ImagesOptions options)
    : workers_(workers),
      rank_(workers.rank()),
      options_(std::move(options)),
      threads_(use_threads(static_cast<int>(options_.threads))),
      meetings_(workers),
      data_(load_images(options_.data, options_.data_folder)),
      batches_(batch_options(options_, workers, data_.train.count)),
      delay_(options_.delay, size(), static_cast<std::uint64_t>(options_.seed)),
      steps_(steps_of(options_, workers.size(), data_.train.count)) {
  if (!options_.pace.empty()) {
    paced_.emplace(options_.pace, static_cast<std::uint64_t>(options_.seed));
  }
  if (!options_.emulate_compute.empty()) {
    emulated_.emplace(options_.emulate_compute, static_cast<std::uint64_t>(options_.seed));
  }
  std::shared_ptr<const train::State> before = take_up();
  folder_ = meetings_.told_by_leader([&] { return make_folder().string(); });
  if (!lock_) {
    lock_.emplace(folder_, FolderLock::Hold::Together);
  }
  begin_files();
  const Images& images = data_.train;
  model_ = make_image_model(options_.model,
                            {.channels = images.channels,
                             .height = images.height,
                             .width = images.width,
                             .classes = images.classes},
                            static_cast<std::uint64_t>(options_.seed));
  train::Options training = training_options(options_, workers_.size(), steps_);
  training.model_sync = model_sync_steps();
  training.ledger = ledger_file(folder_, rank_).string();
  training.ledger_lost = [this](const std::string& why) {
    ledger_lost_ = true;
    say_lost(why);
  };
  training.resume = std::move(before);
  replica_.emplace(model_->module(), workers_, std::move(training), make_optimizer(options_));
  look_at_profile();
  untimed_samples_ = replica_->samples();
  if (options_.checkpoint_every > 0) {
    checkpointing_.emplace(workers_, meetings_, folder_, options_, batches_, steps_,
                           [this] { return trained(); });
  }
}

std::uint64_t Training::model_sync_steps() const {
  const double epochs = options_.model_sync.value_or(0);
  const double steps = epochs * static_cast<double>(batches_.steps_per_epoch());
  return epochs == 0 ? 0 : static_cast<std::uint64_t>(std::max(1.0, std::round(steps)));
}

// What it goes on with; nothing if it begins.
std::shared_ptr<const train::State> Training::take_up() {
  if (options_.resume.empty()) {
    return nullptr;
  }
  resumption_ = find_resumption(options_.resume);
  require_same_training(*resumption_, json_of(options_), workers_.size());
  auto before = state_before();
  first_ = before->step;
  if (first_ > static_cast<std::uint64_t>(options_.warm_up_steps)) {  // which is in no time
    trained_before_ = Seconds(resumption_->manifest.train_seconds);
  }
  return before;
}

// Steps with other numbers than those of the run before (on another number of workers) would get
// mixed up with them.
bool Training::goes_on_in_place() const {
  return resumption_ && options_.out.empty() && first_ == resumption_->manifest.step &&
         workers_.size() == resumption_->manifest.workers;
}

// On the leader: a new folder, or that of the run that goes on. From then on nobody else's.
fs::path Training::make_folder() {
  fs::path folder;
  if (goes_on_in_place()) {
    folder = resumption_->run();
    require(resumption_->checkpoint.parent_path() == checkpoints_of(folder),
            "{} is not in the folder of a run: say with --out where to go on",
            resumption_->checkpoint.string());
    lock_.emplace(folder);
    for (const std::string& aside : tidy_checkpoints(checkpoints_of(folder), first_)) {
      fmt::print(stderr, "newer than what is resumed, and set aside: {}\n", aside);
    }
    fs::remove(folder / "summary.json");
  } else {
    folder =
        make_run_folder(options_.out, fmt::format("{}-{}", options_.algorithm, options_.model));
    lock_.emplace(folder);
  }
  ordered_json config = config_of(options_, workers_, steps_, threads_);
  if (resumption_) {
    config["resumed_from"] = first_;
    fmt::print(stderr, "goes on after step {}, from {}, in {}\n", first_,
               resumption_->checkpoint.string(), folder.string());
  }
  write_json(folder / "config.json", config);
  lock_->share();
  return folder;
}

void Training::begin_files() {
  if (goes_on_in_place()) {
    const bool ended = first_ == steps_;  // and is evaluated again
    for (const ordered_json& line : continue_files(folder_, rank_, first_, ended)) {
      if (line.value("kind", "") == "evaluation") {
        evaluations_.push_back(evaluation_of(line));
      } else if (line.value("step", 0) >= options_.warm_up_steps) {
        const ordered_json loss = line.value("loss", ordered_json());
        statistics_.add_loss_before(loss.is_number() ? loss.get<double>() : kNone);
      }
    }
  }
  metrics_.emplace(folder_, rank_, goes_on_in_place());
}

// Read by everybody; if one cannot, all say so.
std::shared_ptr<const train::State> Training::state_before() {
  const double samples = static_cast<double>(options_.batch) * static_cast<double>(size());
  auto state = std::make_shared<train::State>();
  std::string problem;
  try {
    *state = state_of_worker(*resumption_, rank_, size(), samples);
  } catch (const Error& e) {
    problem = e.what();
  }
  for (const std::string& said :
       train::Assembly(workers_, workers_.next_series()).gather(problem)) {
    require(said.empty(), "{}", said);
  }
  require(state->step <= steps_, "--steps {}: the run that is resumed has taken {} already", steps_,
          state->step);
  return state;
}

void Training::run() {
  progress_.emplace(Progress::form_here(), steps_);
  try {
    take_steps();
  } catch (...) {
    // Lost to the others at once, who go on: to take leave it would have to take its other steps.
    progress_.reset();
    const int code = report(std::current_exception());
    std::fflush(nullptr);
    std::_Exit(code);
  }
  if (!options_.no_evaluation) {
    evaluate_consensus(steps_);
  }
  metrics_->close();
  if (checkpointing_) {
    checkpointing_->finish();
  }
  progress_.reset();
  write_summary();
}

void Training::take_steps() {
  const auto every = static_cast<std::uint64_t>(options_.eval_every);
  watch_.go();
  for (std::uint64_t t = first_; t < steps_; ++t) {
    if (t > first_ && t == static_cast<std::uint64_t>(options_.warm_up_steps)) {
      begin_timing();
    }
    step(t);
    if (every > 0 && (t + 1) % every == 0 && t + 1 < steps_) {
      watch_.stop();
      evaluate_consensus(t + 1);
      watch_.go();
    }
    if (checkpointing_ && checkpointing_->is_due(t + 1)) {
      metrics_->flush();
      checkpointing_->save(t + 1, *replica_);
    }
  }
  replica_->finish();
  watch_.stop();
}

// The warm-up is over: everybody waits for the last, and forgets how long it took.
void Training::begin_timing() {
  watch_.stop();
  const std::array<double, 1> present = {1};
  meetings_.meet(present, 0, [](const Meetings::Records&) { return Meetings::Answer(); });
  statistics_ = {};
  own_times_ = {};
  untimed_samples_ = replica_->samples();
  waited_before_ = replica_->totals().waited;
  watch_.reset();
  watch_.go();
}

void Training::step(std::uint64_t step) {
  const double lr = replica_->lr();
  const WallTime begin = Clock::now();
  const Step now{static_cast<std::int64_t>(step)};
  const train::StepReport report =
      emulated_ ? emulate_step(*replica_, delay_.delay(rank_, now), emulated_->at(rank_, now))
                : compute(step);
  const double took = seconds(Clock::now() - begin);
  const double loss = emulated_ ? kNone : report.loss;
  statistics_.add(took, loss);
  own_times_.add(took - report.waited.count(), replica_->timing().forward.count());
  ordered_json line = {{"kind", "step"},
                       {"step", step},
                       {"begin", begin.time_since_epoch().count()},
                       {"seconds", took},
                       {"waited", report.waited.count()},
                       {"lr", lr}};
  line["loss"] = std::isfinite(loss) ? ordered_json(loss) : ordered_json();
  if (options_.clip) {
    line["gradient_norm"] = report.gradient_norm;
  }
  if (report.skipped) {
    line["skipped"] = true;
  }
  metrics_->write(line);
  show_progress(step + 1, loss);
}

train::StepReport Training::compute(std::uint64_t step) {
  return replica_->step([&] {
    const Step now{static_cast<std::int64_t>(step)};
    const WallTime begin = Clock::now() + delay_.delay(rank_, now);
    std::this_thread::sleep_until(begin);
    const at::Tensor loss = image_loss(*model_, image_batch(data_.train, batches_.batch(step)));
    if (paced_) {
      // Gradients are handed over as they come, so the rest of the time lies before them.
      const ComputeTime time = paced_->at(rank_, now);
      std::this_thread::sleep_until(begin + time.forward + time.backward);
    }
    return loss;
  });
}

void Training::show_progress(std::uint64_t done, double loss) {
  if (!progress_->due() || !meetings_.leads()) {
    return;
  }
  progress_->show({.step = done,
                   .loss = loss,
                   .samples_per_second = timed_samples() / watch_.time().count(),
                   .stale = replica_->totals().stale_fraction});
}

// Each worker takes its part of the test set; the leader those of the lost ones too. The time is
// that of whoever has trained longest: one who is ahead waits here, and its clock stands.
Training::Look Training::look_together() {
  const Images& test = data_.test;
  const auto part = [&](std::size_t worker) {
    const std::size_t first = test.count * worker / size();
    const std::size_t end = test.count * (worker + 1) / size();
    const Score score = evaluate(*model_, test, first, end - first,
                                 static_cast<std::size_t>(options_.evaluate_batch));
    return std::vector{score.samples, score.correct, score.loss, trained().count()};
  };
  const Meetings::Answer all =
      meetings_.meet(part(rank_.index()), 4, [&](const Meetings::Records& records) {
        Meetings::Answer total(4);
        for (std::size_t worker = 0; worker < records.size(); ++worker) {
          const std::vector<double> one = records[worker] ? *records[worker] : part(worker);
          for (std::size_t i = 0; i < 3; ++i) {
            total[i] += one[i];
          }
          total[3] = std::max(total[3], one[3]);
        }
        return total;
      });
  return {.score = {.samples = all[0], .correct = all[1], .loss = all[2]}, .time = Seconds(all[3])};
}

void Training::evaluate_consensus(std::uint64_t step) {
  Look look;
  const train::Consensus consensus =
      replica_->with_consensus_model([&] { look = look_together(); });
  const Score& score = look.score;
  const Evaluation evaluation{.step = step,
                              .accuracy = score.correct / score.samples,
                              .loss = score.loss / score.samples,
                              .consensus = consensus,
                              .time = look.time};
  evaluations_.push_back(evaluation);
  ordered_json line = json_of(evaluation);
  line["kind"] = "evaluation";
  metrics_->write(line);
  if (step < steps_ && meetings_.leads()) {  // the last one is in the summary
    progress_->say(
        fmt::format("step {}: test accuracy {:.4f}, loss {:.4f}, consensus distance {:.3g}", step,
                    evaluation.accuracy, evaluation.loss, consensus.distance));
  }
}

// By the runtime model, of a model in these buckets; nothing if nobody averages.
std::optional<double> Training::predict(std::vector<std::size_t> bucket_ends, const Predict& by) {
  if (options_.algorithm == "alone" || size() < 2 || bucket_ends.empty()) {
    return std::nullopt;
  }
  const train::PlanOfRounds rounds =
      train::plan_rounds(workers_, training_options(options_, size(), steps_));
  return by({.rounds = rounds,
             .options = options_,
             .workers = size(),
             .per_node = train::workers_per_node(workers_),
             .bucket_ends = std::move(bucket_ends)});
}

// Before the first step, so that a profile that does not fit costs nothing.
void Training::look_at_profile() {
  if (options_.profile.empty()) {
    return;
  }
  const std::string told = meetings_.told_by_leader([&] {
    const std::size_t bytes = count_parameters(*model_) * sizeof(float);
    const std::optional<double> step = predict({bytes}, predict_from_profile);
    return step ? fmt::format("{}", *step) : std::string("none");
  });
  if (told != "none") {
    predicted_ = std::stod(told);
  }
}

// On the leader.
std::optional<double> Training::predict_from_own_steps() {
  const bool has_buckets = replica_->buckets() > 0;  // once a step was taken
  const auto ends = has_buckets ? replica_->bucket_ends() : std::vector<std::size_t>();
  return predict(ends, [&](const Predicted& what) {
    std::optional<double> step;
    meetings_.meet(own_times_.record(replica_->exchanges(), phases_of(what)), 0,
                   [&](const Meetings::Records& records) {
                     step = predict_from_parts(what, records);
                     return Meetings::Answer();
                   });
    return step;
  });
}

std::vector<double> Training::own_record() {
  train::Totals totals = replica_->totals();
  totals.waited -= waited_before_;
  return record_of(statistics_, totals, watch_.time().count(),
                   {.metrics = metrics_->is_lost(), .ledger = ledger_lost_});
}

void Training::write_summary() {
  const std::optional<double> predicted =
      options_.profile.empty() ? predict_from_own_steps() : predicted_;
  meetings_.meet(own_record(), 0, [&](const Meetings::Records& records) {
    ordered_json summary = {
        {"folder", folder_.string()},
        {"model", options_.model},
        {"parameters", count_parameters(*model_)},
        {"data", options_.data},
        {"algorithm", options_.algorithm},
        {"optimizer", options_.optimizer},
        {"batch", options_.batch},
        {"seed", options_.seed},
        {"steps", steps_},
        {"warm_up_steps", options_.warm_up_steps},
        {"epochs", static_cast<double>(steps_) / static_cast<double>(batches_.steps_per_epoch())}};
    if (resumption_) {
      summary["resumed_from"] = first_;
    }
    if (checkpointing_) {
      summary["checkpoints"] = checkpointing_->completed();
      summary["checkpoint_seconds"] = checkpointing_->stood_still().count();
    }
    summary.update(results_of(records, timed_samples()));
    summary["predicted_step_seconds"] = predicted ? ordered_json(*predicted) : ordered_json();
    summary["predicted_from"] = options_.profile.empty() ? "own steps" : options_.profile;
    const ordered_json last =
        evaluations_.empty() ? ordered_json::object() : json_of(evaluations_.back());
    for (const char* name :
         {"test_accuracy", "test_loss", "consensus_distance", "consensus_relative"}) {
      summary[name] = last.value(name, ordered_json());
    }
    summary["evaluations"] = ordered_json::array();
    for (const Evaluation& evaluation : evaluations_) {
      summary["evaluations"].push_back(json_of(evaluation));
    }
    fmt::print("{}", options_.json ? text_of(summary) : text_of_summary(summary));
    std::fflush(stdout);
    write_json(folder_ / "summary.json", summary);
    return Meetings::Answer();
  });
}

}  // namespace

void train_images(const ImagesOptions& typed) {
  keep_freed_memory();
  comm::ConnectOptions meeting;
  meeting.configuration = text_of(typed);
  const auto workers = comm::connect(meeting);
  const auto size = static_cast<std::int64_t>(workers->size());
  require(typed.workers.value_or(size) == size,
          "--workers {}: this job has {}; `starling train` starts as many as it is asked for",
          *typed.workers, size);
  if (workers->rank() == Rank{0} && measure_gigaflops() < kSlowGigaflops) {
    fmt::print(stderr, "torch runs on a slow BLAS: apt-get install libopenblas0-pthread\n");
  }
  Training(*workers, settle(typed, workers->size())).run();
}

}  // namespace starling::workload
