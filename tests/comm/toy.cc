#include "tests/comm/toy.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>

#include "starling/base/error.h"

namespace starling::test {

Toy::Toy(comm::Engine& engine, std::size_t elements, Change change, Pace pace)
    : engine_(engine),
      change_(std::move(change)),
      pace_(std::move(pace)),
      model_(elements),
      gradient_(elements) {}

Task<void> Toy::compute(Step step) {
  for (std::size_t i = 0; i < model_.size(); ++i) {
    gradient_[i] = change_(engine_.rank(), step, i, model_[i]);
  }
  co_await engine_.sleep_for(
      std::chrono::duration_cast<Duration>(Seconds(pace_(engine_.rank(), step))));
}

Task<void> Toy::apart(std::function<void()> work) {
  if (hop_ > 0) {
    co_await engine_.sleep_for(
        std::chrono::duration_cast<Duration>(Seconds(hop_ * hops_.uniform())));
  }
  work();
}

void Toy::hop(double seconds, std::uint64_t seed) {
  hop_ = seconds;
  hops_ = RandomSequence(Random(seed).stream(engine_.rank().value).stream(0x40B));
}

void Toy::update(Step, comm::Buffer model) {
  auto* values = reinterpret_cast<float*>(model.blob.data);
  for (std::size_t i = 0; i < gradient_.size(); ++i) {
    values[i] += gradient_[i];
  }
}

// --- Part by part

void Toy::stream(bool gradients, Mixed mixed) {
  streams_ = true;
  sends_gradients_ = gradients;
  mixed_ = std::move(mixed);
}

// Only of gradients that were averaged part by part.
bool Toy::update_at_once(const comm::Update& update) {
  if (!streams_ || update.mean_gradient.blob.size == 0) {
    return false;
  }
  const std::array<comm::ConstBlob, 1> sum = {update.mean_gradient.blob};
  const std::array<double, 1> share = {update.of_mean_gradient};
  engine_.arithmetic().mix(comm::Type::Float32, gradient().blob, sum, share);
  this->update(update.step, update.into);
  return true;
}

Task<void> Toy::part_time(Step step, std::size_t parts) {
  const double share = pace_(engine_.rank(), step) / static_cast<double>(parts);
  co_await engine_.sleep_for(std::chrono::duration_cast<Duration>(Seconds(share)));
}

Task<void> Toy::compute_in_parts(Step step, comm::Streaming& streaming) {
  const auto v = static_cast<comm::Version>(step.value);
  for (std::size_t i = 0; i < model_.size(); ++i) {
    gradient_[i] = change_(engine_.rank(), step, i, model_[i]);
  }
  for (std::size_t part = 0; part < streaming.parts(); ++part) {
    co_await part_time(step, streaming.parts());
    if (sends_gradients_) {
      const auto [begin, end] = streaming.range(part);
      engine_.arithmetic().copy(streaming.snapshot().blob.slice(begin, end),
                                gradient().blob.slice(begin, end));
      streaming.publish(part, v);
    } else {
      co_await streaming.until_there(part, v);
      mix_and_update(step, streaming, part);
      streaming.publish(part, v + 1);
    }
  }
}

void Toy::mix_and_update(Step step, const comm::Streaming& streaming, std::size_t part) {
  const auto [begin, end] = streaming.range(part);
  const comm::Buffer own{comm::Type::Float32, model().blob.slice(begin, end)};
  const std::optional<comm::Weights> weights =
      streaming.weights(part, static_cast<comm::Version>(step.value));
  if (weights) {
    comm::average_into(engine_.arithmetic(), own,
                       {own.type, streaming.result().blob.slice(begin, end)}, {own.type, own.blob},
                       *weights, streaming.rounded());
  }
  const std::size_t first = begin / sizeof(float);
  const std::span<float> values = std::span(model_).subspan(first, own.elements());
  if (mixed_) {
    mixed_(engine_.rank(), step, part, values, weights ? weights->divisor : 1);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] += gradient_[first + i];
  }
  engine_.arithmetic().copy(streaming.snapshot().blob.slice(begin, end), own.blob);
}

namespace {

Task<void> one_worker(comm::Engine& engine, const Crew& crew, comm::StepOptions options,
                      Trained& trained, std::string& lines) {
  const Rank rank = engine.rank();
  Toy toy(engine, crew.elements, crew.change, crew.pace);
  toy.hop(crew.hop, crew.network.seed);
  if (crew.streams) {
    toy.stream(options.algorithm->payload == topology::Payload::Gradients, crew.mixed);
  }
  for (std::size_t i = 0; i < crew.elements; ++i) {
    toy.values()[i] = crew.initial(rank, i);
  }
  const bool held = options.algorithm->payload == topology::Payload::HeldModel ||
                    options.algorithm->missing == topology::Missing::LatestModel;
  comm::Ledger ledger(rank, held, [&lines](std::string_view text) { lines += text; });
  options.ledger = &ledger;
  options.progress = [&](Step step) {
    if (crew.after_step) {
      crew.after_step(rank, step, toy, engine);
    }
  };
  if (crew.steps_of) {
    options.steps = crew.steps_of(rank);
    options.together = false;
  }
  std::exception_ptr error;
  try {
    trained.reports[rank.index()] = co_await comm::take_steps(engine, toy, options);
  } catch (...) {
    error = std::current_exception();
  }
  trained.models[rank.index()] = toy.values();
  trained.totals[rank.index()] = ledger.totals();
  trained.seconds[rank.index()] = seconds(engine.now().time_since_epoch());
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace

Trained train(Crew crew) {
  const topology::Algorithm& algorithm = topology::find_algorithm(crew.algorithm);
  topology::ScheduleOptions schedule_options;
  schedule_options.workers = static_cast<std::uint32_t>(crew.workers);
  schedule_options.group_size = crew.group_size;
  const auto schedule = topology::make_schedule(
      crew.schedule.empty() ? algorithm.schedules[0] : std::string_view(crew.schedule),
      schedule_options);
  comm::StepOptions options = crew.step;
  options.algorithm = &algorithm;
  options.schedule = schedule.get();
  options.shape = {comm::Type::Float32, crew.elements, false};
  sim::ClusterOptions cluster_options;
  cluster_options.network = crew.network;
  cluster_options.network.ports.workers = crew.workers;
  cluster_options.engine = crew.engine;
  sim::Cluster cluster(cluster_options);
  for (const sim::Fault& fault : crew.faults) {
    cluster.network().plan(fault);
  }
  Trained trained;
  trained.models.resize(crew.workers);
  trained.reports.resize(crew.workers);
  trained.totals.resize(crew.workers);
  trained.seconds.resize(crew.workers);
  std::vector<std::string> lines(crew.workers);
  trained.ends = cluster.run([&](comm::Engine& engine) {
    return one_worker(engine, crew, options, trained, lines[engine.rank().index()]);
  });
  trained.events = cluster.network().events();
  for (const std::string& text : lines) {
    std::istringstream in(text);
    for (comm::LedgerRow& row : comm::read_ledger(in)) {
      trained.ledger.push_back(std::move(row));
    }
  }
  return trained;
}

comm::LedgerTotals Trained::total() const {
  comm::LedgerTotals sum;
  for (const comm::LedgerTotals& one : totals) {
    sum += one;
  }
  return sum;
}

namespace {

template <typename Row>
std::vector<Row> rows_of(const std::vector<comm::LedgerRow>& ledger, Rank rank) {
  std::vector<Row> rows;
  for (const comm::LedgerRow& row : ledger) {
    if (row.worker == rank && std::holds_alternative<Row>(row.what)) {
      rows.push_back(std::get<Row>(row.what));
    }
  }
  return rows;
}

}  // namespace

std::vector<comm::Outcome> Trained::rounds_of(Rank rank) const {
  return rows_of<comm::Outcome>(ledger, rank);
}

std::vector<comm::PickUp> Trained::pick_ups_of(Rank rank) const {
  return rows_of<comm::PickUp>(ledger, rank);
}

std::string text_of(const std::exception_ptr& end) {
  if (!end) {
    return "";
  }
  try {
    std::rethrow_exception(end);
  } catch (const std::exception& e) {
    return e.what();
  }
}

Pace jitter(std::uint64_t seed, double spread) {
  return [random = Random(seed), spread](Rank r, Step s) {
    const auto index = static_cast<std::uint64_t>(s.value);
    return 1e-3 * (1 + spread * (2 * random.stream(r.value).uniform(index) - 1));
  };
}

Pace stragglers(std::uint64_t seed, double lateness) {
  return [random = Random(seed), lateness](Rank r, Step s) {
    const auto index = static_cast<std::uint64_t>(s.value);
    const double draw = random.stream(r.value).uniform(index);
    return 1e-3 * (1 + 0.02 * draw + (draw < 0.1 ? lateness : 0));
  };
}

Pace heavy_tails(std::uint64_t seed) {
  return [random = Random(seed)](Rank r, Step s) {
    const auto index = static_cast<std::uint64_t>(s.value);
    const double draw = random.stream(r.value).uniform(index);
    return 0.5e-3 * (draw < 0.01 ? 100 : draw < 0.1 ? 10 : 1 + draw);
  };
}

std::uint64_t versions_or(std::uint64_t few) {
  const char* text = std::getenv("STARLING_VERSIONS");
  return text == nullptr ? few : std::strtoull(text, nullptr, 10);
}

void in_runs(std::uint64_t versions,
             const std::function<void(std::uint64_t seed, std::uint64_t steps)>& run) {
  constexpr std::uint64_t kMost = 2000;
  for (std::uint64_t done = 0; done < versions; done += kMost) {
    run(done / kMost, std::min(kMost, versions - done));
  }
}

}  // namespace starling::test
