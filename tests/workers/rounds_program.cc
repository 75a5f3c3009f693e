// A worker that trains a toy (audited_toy.h) with one algorithm after the other, and then compares
// everything it has seen with its ledger, and its syncs with the others':
//     rounds_program STEPS [--algorithms A,B] [--elements N] [--lossy]
// Lines: "ready"; "step N" now and then; with --lossy, where others may be killed, and voids are no
// fault: "void N", "waited SECONDS" (the longest); "done". Exit code 0: all right.
#include <fmt/format.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "starling/base/error.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/connect.h"
#include "starling/topology/schedule.h"
#include "tests/workers/audit.h"
#include "tests/workers/audited_toy.h"

namespace starling::test {
namespace {

constexpr std::uint32_t kSyncPeriod = 8;

struct Request {
  std::uint64_t steps = 0;
  std::vector<std::string> algorithms = {"wagma", "starling", "all-reduce", "eager-solo"};
  std::size_t elements = 1000;
  bool lossy = false;
};

Request parse(int argc, char** argv) {
  require(argc > 1, "rounds_program STEPS …");
  Request request;
  request.steps = std::stoull(argv[1]) / kSyncPeriod * kSyncPeriod;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--lossy") {
      request.lossy = true;
      continue;
    }
    require(i + 1 < argc, "{} needs a value", word);
    if (word == "--elements") {
      request.elements = std::stoull(argv[++i]);
    } else if (word == "--algorithms") {
      std::istringstream names(argv[++i]);
      request.algorithms.clear();
      for (std::string name; std::getline(names, name, ',');) {
        request.algorithms.push_back(name);
      }
    } else {
      require(false, "unknown option '{}'", word);
    }
  }
  return request;
}

template <typename... Args>
void say(fmt::format_string<Args...> text, Args&&... args) {
  fmt::print("{}\n", fmt::format(text, std::forward<Args>(args)...));
  std::fflush(stdout);
}

class RoundsWorker {
 public:
  explicit RoundsWorker(const Request& request)
      : request_(request), workers_(comm::connect(connect_options())) {}

  void run() {
    say("ready");
    for (std::size_t i = 0; i < request_.algorithms.size(); ++i) {
      train(request_.algorithms[i], i);
    }
    say("done");
  }

 private:
  static comm::ConnectOptions connect_options() {
    comm::ConnectOptions options;
    options.engine.max_stall = std::chrono::seconds(60);
    return options;
  }

  // A model that all have in common is averaged by all in person, always.
  static std::uint32_t sync_period(const topology::Algorithm& algorithm) {
    return algorithm.gradient_at == topology::GradientAt::CommonModel ? 1 : kSyncPeriod;
  }

  comm::StepOptions step_options(const topology::Algorithm& algorithm,
                                 const topology::Schedule& schedule, std::uint64_t series) const {
    comm::StepOptions options;
    options.algorithm = &algorithm;
    options.schedule = &schedule;
    options.shape = {comm::Type::Float64, request_.elements, false};
    options.steps = request_.steps;
    options.sync_period = sync_period(algorithm);
    options.series = series;
    return options;
  }

  void train(const std::string& name, std::uint64_t series) {
    const topology::Algorithm& algorithm = topology::find_algorithm(name);
    topology::ScheduleOptions schedule_options;
    schedule_options.workers = static_cast<std::uint32_t>(workers_->size());
    const auto schedule = topology::make_schedule(algorithm.schedules[0], schedule_options);
    AuditedToy toy(*workers_, {.algorithm = &algorithm,
                               .elements = request_.elements,
                               .sync_period = sync_period(algorithm),
                               .seed = 1 + series});
    const bool held = algorithm.payload == topology::Payload::HeldModel;
    std::stringstream lines;
    comm::Ledger ledger(workers_->rank(), held, [&](std::string_view text) { lines << text; });
    comm::StepOptions options = step_options(algorithm, *schedule, series);
    options.ledger = &ledger;
    options.progress = [&](Step step) {
      toy.step_ended();
      if (step.value % 10 == 0) {
        say("step {}", step);
      }
    };
    workers_->run([&](comm::Engine& engine) { return comm::take_steps(engine, toy, options); });

    Run run{.self = workers_->rank(),
            .workers = workers_->size(),
            .steps = request_.steps,
            .sync_period = sync_period(algorithm),
            .lossy = request_.lossy,
            .rounds = {},
            .pick_ups = {},
            .values = toy.values()};
    read(run, lines);
    audit(run, algorithm);
  }

  void audit(const Run& run, const topology::Algorithm& algorithm) {
    audit_order(run);
    const Tables tables = exchange(table(run));
    if (algorithm.payload == topology::Payload::HeldModel) {
      audit_held(run, tables);
    } else if (algorithm.payload == topology::Payload::Gradients) {
      audit_gradients(run, tables);
    } else {
      audit_averages(run);
    }
    const bool held = algorithm.payload == topology::Payload::HeldModel;
    const std::vector<double> own = syncs(run, held);
    for (const std::vector<double>& other : exchange(own)) {
      const std::size_t same = other.empty() ? 0 : compare_syncs(run, own, other);
      check(same > 0 || other.empty(), "{}: no sync to compare", algorithm.name);
      check(request_.lossy || held || same == run.steps / run.sync_period, "{}: {} syncs compared",
            algorithm.name, same);
    }
    if (request_.lossy) {
      say("void {}", run.voids());
      say("waited {:.6f}", run.longest_wait());
    }
  }

  // Everyone's, by rank; nothing of those who are lost. If one is lost meanwhile, once more.
  Tables exchange(const std::vector<double>& own) {
    const std::uint64_t first_id = 1 + exchanged_++ * (workers_->size() + 1);
    while (true) {
      const std::vector<Rank> alive = survivors();
      std::vector<double> rows(workers_->size() * own.size());
      std::vector<double> all(rows.size());
      std::copy(own.begin(), own.end(),
                rows.begin() + static_cast<std::ptrdiff_t>(workers_->rank().index() * own.size()));
      try {
        workers_->run([&](comm::Engine& engine) {
          return comm::all_reduce(
              engine, {.id = first_id + workers_->size() - alive.size(), .members = alive},
              comm::input(std::span(rows)), comm::output(std::span(all)));
        });
      } catch (const Error& e) {
        if (e.code() != ErrorCode::Lost || survivors().size() == alive.size()) {
          throw;
        }
        continue;
      }
      Tables result(workers_->size());
      for (const Rank r : alive) {
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(r.index() * own.size());
        result[r.index()].assign(from, from + static_cast<std::ptrdiff_t>(own.size()));
      }
      return result;
    }
  }

  std::vector<Rank> survivors() {
    return workers_->run([](comm::Engine& engine) -> Task<std::vector<Rank>> {
      std::vector<Rank> alive;
      for (std::uint32_t r = 0; r < engine.size(); ++r) {
        if (!engine.lost(Rank{r})) {
          alive.push_back(Rank{r});
        }
      }
      co_return alive;
    });
  }

  Request request_;
  std::unique_ptr<comm::Workers> workers_;
  std::uint64_t exchanged_ = 0;
};

}  // namespace
}  // namespace starling::test

int main(int argc, char** argv) {
  try {
    starling::test::RoundsWorker(starling::test::parse(argc, argv)).run();
    return 0;
  } catch (const std::exception& e) {
    fmt::print("failed: {}\n", e.what());
    return 1;
  }
}
