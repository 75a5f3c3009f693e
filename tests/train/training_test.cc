// Real processes train torch models (training_program.cc): bit for bit what the single-process
// reference computes, whatever the optimizer, the row, the schedule, the buckets and the type; and
// what is promised when parameters, batches, models or workers are not as usual.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "starling/base/error.h"
#include "starling/base/random.h"
#include "starling/comm/arithmetic.h"
#include "starling/comm/averaging.h"
#include "starling/comm/replay.h"
#include "tests/train/reference.h"
#include "tests/workers/crew.h"

namespace starling::test {
namespace {

const std::string kProgram = STARLING_TRAINING_PROGRAM;
constexpr std::chrono::seconds kPatience(300);  // with a machine that does much else

std::vector<std::string> command(std::vector<std::string> words) {
  words.insert(words.begin(), kProgram);
  return words;
}

// The words after `beginning` in the output of a worker.
std::string line_after(const std::string& output, const std::string& beginning) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(beginning + " ")) {
      return line.substr(beginning.size() + 1);
    }
  }
  ADD_FAILURE() << "'" << beginning << "' is not in: " << output;
  return "";
}

double number_after(const std::string& output, const std::string& word) {
  const std::size_t at = output.find(word + " ");
  EXPECT_NE(at, std::string::npos) << "'" << word << "' is not in: " << output;
  return at == std::string::npos ? 0 : std::stod(output.substr(at + word.size() + 1));
}

// --- The cases -----------------------------------------------------------------------------------

using Levels = std::vector<std::size_t>;  // one of each factor

// Rows of levels such that any two levels of any two factors meet in one of them. Greedy: of a few
// candidates the one that covers most pairs that are still missing.
std::vector<Levels> pairwise(const Levels& sizes) {
  using Pair = std::array<std::size_t, 4>;
  std::set<Pair> missing;
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    for (std::size_t b = a + 1; b < sizes.size(); ++b) {
      for (std::size_t i = 0; i < sizes[a] * sizes[b]; ++i) {
        missing.insert({a, b, i / sizes[b], i % sizes[b]});
      }
    }
  }
  const auto covered = [&](const Levels& row) {
    std::vector<Pair> pairs;
    for (const Pair& pair : missing) {
      if (row[pair[0]] == pair[2] && row[pair[1]] == pair[3]) {
        pairs.push_back(pair);
      }
    }
    return pairs;
  };
  std::vector<Levels> rows;
  RandomSequence draw(Random(5));
  while (!missing.empty()) {
    Levels best;
    std::size_t most = 0;
    for (int attempt = 0; attempt < 30; ++attempt) {
      Levels row;
      for (const std::size_t size : sizes) {
        row.push_back(draw.below(size));
      }
      const Pair& first = *missing.begin();
      row[first[0]] = first[2];
      row[first[1]] = first[3];
      if (covered(row).size() > most) {
        most = covered(row).size();
        best = row;
      }
    }
    for (const Pair& pair : covered(best)) {
      missing.erase(pair);
    }
    rows.push_back(best);
  }
  return rows;
}

const std::vector<std::string> kOptimizers = {"sgd",   "momentum",   "nesterov",   "adam",
                                              "adamw", "accum-adam", "accum-adamw"};

// Optimizers, rows with their schedules, sizes of buckets, numbers of workers and types.
std::vector<Case> pairwise_cases(std::size_t workers) {
  struct Row {
    std::string algorithm;
    std::string schedule;
  };
  const std::vector<Row> rows = {{"all-reduce", ""},        {"alone", ""},
                                 {"dadam", "complete"},     {"dadam", "ring"},
                                 {"dadam", "aer"},          {"dadam", "exponential"},
                                 {"dadam", "groups"},       {"dadam", "base-k"},
                                 {"dadam", "fixed-groups"}, {"dadam", "ring-neighbours"},
                                 {"dadam", "pairs"}};
  const std::vector<std::size_t> buckets = {64, 333, std::size_t{1} << 20};
  std::vector<Case> cases;
  for (const Levels& levels : pairwise({rows.size(), kOptimizers.size(), buckets.size(), 4, 2})) {
    Case c;
    c.algorithm = rows[levels[0]].algorithm;
    c.schedule = rows[levels[0]].schedule;
    c.optimizer = kOptimizers[levels[1]];
    c.bucket = buckets[levels[2]];
    c.wide = levels[4] == 1;
    if (levels[3] + 2 == workers) {
      cases.push_back(c);
    }
  }
  return cases;
}

Case with(std::string quirk, std::string algorithm, std::string optimizer, bool wide = false) {
  Case c;
  c.quirk = std::move(quirk);
  c.algorithm = std::move(algorithm);
  c.schedule = c.algorithm == "dadam" ? "exponential" : "";
  c.optimizer = std::move(optimizer);
  c.wide = wide;
  c.bucket = wide ? 600 : 200;
  c.steps = 50;
  return c;
}

const std::vector<std::string> kQuirks = {"twice",       "unused",        "never-used",   "frozen",
                                          "mixed-types", "micro-batches", "two-forwards", "samples",
                                          "scaled",      "skips",         "evaluates"};

std::vector<Case> unusual_cases(const std::string& quirk) {
  return {with(quirk, "dadam", "adamw"), with(quirk, "dadam", "momentum", true),
          with(quirk, "all-reduce", "adam"), with(quirk, "alone", "nesterov")};
}

std::vector<Case> clipped_cases() {
  std::vector<Case> cases;
  for (const std::string clip : {"global", "delayed"}) {
    for (const std::string algorithm : {"dadam", "all-reduce", "alone"}) {
      for (const std::size_t bucket : {64U, 1U << 20}) {
        Case c = with("none", algorithm, "sgd");
        c.bucket = bucket;
        cases.push_back(c);
        cases.back().clip = clip;
      }
      for (const std::string quirk : {"scaled", "samples"}) {
        cases.push_back(with(quirk, algorithm, "momentum", true));
        cases.back().clip = clip;
      }
    }
  }
  return cases;
}

std::vector<Case> rounded_cases() {
  std::vector<Case> cases;
  for (const std::string schedule : {"complete", "ring", "exponential"}) {
    cases.push_back(with("none", "dadam", "adam"));
    cases.back().schedule = schedule;
    cases.back().bf16 = true;
  }
  return cases;
}

// Those of other papers, in which everyone waits; in both orders where there are two.
std::vector<Case> other_rows(std::size_t workers) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& algorithm, const std::string& optimizer) -> Case& {
    cases.push_back(with("none", algorithm, optimizer, cases.size() % 2 == 1));
    return cases.back();
  };
  for (const std::string averaging : {"", "after", "beside"}) {
    add("d-psgd", "momentum").averaging = averaging;
    for (const std::uint32_t period : {1U, 7U}) {
      Case& c = add("local-sgd", "nesterov");
      c.averaging = averaging;
      c.period = period;
    }
  }
  for (const std::string algorithm : {"sgp", "overlapped-sgp"}) {
    for (std::uint32_t peers = 1; peers <= (workers > 3 ? 2U : 1U); ++peers) {
      for (const std::string optimizer : {"sgd", "adamw", "accum-adam"}) {
        add(algorithm, optimizer).peers = peers;
      }
    }
  }
  return cases;
}

Case rounded_neighbours() {
  Case c = with("none", "dadam", "adam");
  c.schedule = "ring-neighbours";
  c.bf16 = true;
  return c;
}

std::filesystem::path folder() {
  static const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("starling-training-test-{}", getpid());
  std::filesystem::create_directories(path);
  return path;
}

std::vector<Case> ledger_cases(std::size_t workers) {
  std::vector<Case> cases;
  for (const std::string algorithm :
       {"wagma", "starling", "ad-psgd", "eager-solo", "eager-majority"}) {
    for (const std::string optimizer : {"momentum", "adamw", "accum-adamw"}) {
      Case c = with("none", algorithm, optimizer);
      c.ledger = (folder() / fmt::format("{}-{}-{}", workers, algorithm, optimizer)).string();
      cases.push_back(c);
    }
  }
  return cases;
}

// --- Jobs: all cases of a number of workers, one after the other in the same processes -----------

std::vector<Case> cases_of(std::size_t workers) {
  std::vector<Case> cases = pairwise_cases(workers);
  const auto add = [&](const std::vector<Case>& more) {
    cases.insert(cases.end(), more.begin(), more.end());
  };
  if (workers == 3) {
    for (const std::string& quirk : kQuirks) {
      add(unusual_cases(quirk));
    }
    add(clipped_cases());
    add({rounded_neighbours()});
  } else if (workers == 4) {
    add(rounded_cases());
    add(other_rows(4));
    add(ledger_cases(4));
  } else if (workers == 5) {
    add(other_rows(5));
    add(ledger_cases(5));
  }
  return cases;
}

struct Printed {
  std::vector<std::uint64_t> fingerprints;  // by worker
  std::size_t buckets = 0;
};
using Job = std::map<std::string, Printed>;  // by the text of the case

Job run_job(std::size_t workers) {
  const std::vector<Case> cases = cases_of(workers);
  std::vector<std::string> words = {"cases"};
  for (const Case& c : cases) {
    words.push_back(to_text(c));
  }
  Crew crew(workers, command(words));
  Job job;
  for (std::size_t r = 0; r < workers; ++r) {
    EXPECT_EQ(crew.wait(r, std::chrono::seconds(900)), 0) << crew.output(r);
    const std::string output = crew.output(r);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (output.find(fmt::format("case {} ", i)) == std::string::npos) {
        break;
      }
      const std::string said = line_after(output, fmt::format("case {}", i));
      std::size_t read = 0;
      Printed& printed = job[to_text(cases[i])];
      printed.fingerprints.push_back(std::stoull(said, &read, 16));
      printed.buckets = std::stoull(said.substr(read));
    }
  }
  return job;
}

Printed printed_of(const Case& c, std::size_t workers) {
  static std::map<std::size_t, Job> jobs;
  if (!jobs.contains(workers)) {
    jobs[workers] = run_job(workers);
  }
  const auto known = jobs[workers].find(to_text(c));
  if (known == jobs[workers].end()) {
    ADD_FAILURE() << "nothing of " << to_text(c);
    return {};
  }
  return known->second;
}

void expect_as_reference(const std::vector<Case>& cases, std::size_t workers) {
  for (const Case& c : cases) {
    EXPECT_EQ(printed_of(c, workers).fingerprints, train_by_reference(c, workers))
        << workers << " workers, " << to_text(c);
  }
}

// --- Bit equality --------------------------------------------------------------------------------

TEST(Training, EveryPairOfOptionsComputesWhatTheReferenceComputes) {
  std::size_t all = 0;
  for (const std::size_t workers : {2U, 3U, 4U, 5U}) {
    const std::vector<Case> cases = pairwise_cases(workers);
    expect_as_reference(cases, workers);
    std::set<std::size_t> buckets;
    for (const Case& c : cases) {
      buckets.insert(printed_of(c, workers).buckets);
    }
    EXPECT_TRUE(buckets.contains(1) && *buckets.rbegin() > 2) << "buckets are always the same";
    all += cases.size();
  }
  fmt::print("{} cases of 100 steps\n", all);
}

TEST(Training, RowsOfOtherPapersComputeWhatTheReferenceComputes) {
  for (const std::size_t workers : {4U, 5U}) {
    expect_as_reference(other_rows(workers), workers);
  }
}

// Chance decides who contributed what to which average; the ledger tells it, and the rest follows.
TEST(Training, ARunIsComputedAgainFromItsLedger) {
  for (const std::size_t workers : {4U, 5U}) {
    for (const Case& c : ledger_cases(workers)) {
      const std::vector<std::uint64_t> fingerprints = printed_of(c, workers).fingerprints;
      ASSERT_EQ(fingerprints.size(), workers);
      std::vector<comm::LedgerRow> rows;
      std::vector<ReferenceUpdates> updates;
      for (std::size_t r = 0; r < workers; ++r) {
        std::ifstream file(fmt::format("{}-{}.jsonl", c.ledger, r));
        for (comm::LedgerRow& row : comm::read_ledger(file)) {
          rows.push_back(std::move(row));
        }
        updates.emplace_back(c);
      }
      comm::ReplayModel model;
      model.elements = ReferenceUpdates::elements();
      model.initial = [](Rank, std::size_t element) { return initial_of_flat(element); };
      model.update = [&](Rank r, Step s, std::span<const float> at, std::span<float> into) {
        updates[r.index()].next(r.index(), static_cast<std::uint64_t>(s.value), at, into);
      };
      model.gradient = [&](Rank r, Step s, std::span<const float> at, std::span<float> into) {
        updates[r.index()].gradient(r.index(), static_cast<std::uint64_t>(s.value), at, into);
      };
      model.apply = [&](Rank r, Step, std::span<const float> mean, std::span<float> into) {
        updates[r.index()].apply(mean, into);
      };
      comm::ReplayOptions options;
      options.workers = workers;
      options.held = c.algorithm == "starling" || c.algorithm == "ad-psgd";
      options.gradients = c.algorithm.starts_with("eager");
      const auto models = comm::replay(rows, options, model);
      for (std::size_t r = 0; r < workers; ++r) {
        EXPECT_EQ(fingerprint_of_flat(models[r]), fingerprints[r])
            << "worker " << r << " of " << workers << ", " << to_text(c);
      }
    }
  }
  std::filesystem::remove_all(folder());
}

// --- In two pieces -------------------------------------------------------------------------------

// A worker's fingerprints: in one piece, in two, and where it was cut.
void expect_as_in_one_piece(const std::string& said, const std::string& what) {
  std::istringstream words(said);
  std::string whole;
  std::string resumed;
  std::string before;
  words >> whole >> resumed >> before;
  EXPECT_EQ(whole.size(), 16U) << what;
  EXPECT_EQ(whole, resumed) << what;
  EXPECT_NE(whole, before) << what;
}

// Cut in the middle of accumulation windows (4 steps) and of local SGD's periods (10 steps).
TEST(Training, GoesOnFromAStateBitForBit) {
  const std::vector<std::string> rows = {"all-reduce", "dadam",     "accum-adam",     "d-psgd",
                                         "sgp",        "local-sgd", "overlapped-sgp", "alone"};
  std::vector<Case> cases;
  const auto add = [&](Case c) {
    c.steps = 25;
    cases.push_back(std::move(c));
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < 2; ++k) {
      Case c = with("none", rows[i], kOptimizers[(2 * i + 5 * k) % kOptimizers.size()], k == 1);
      c.schedule = "";
      add(c);
    }
    Case accumulated = with("none", rows[i], "accum-adamw");
    accumulated.schedule = "";
    accumulated.clip = "delayed";
    add(accumulated);
  }
  for (const std::string quirk : {"unused", "frozen", "mixed-types", "twice", "samples"}) {
    add(with(quirk, "dadam", "adamw"));
    add(with(quirk, "all-reduce", "accum-adam"));
  }
  for (const Case& c : rounded_cases()) {
    add(c);
  }
  std::vector<std::string> words = {"resumes"};
  for (const Case& c : cases) {
    words.push_back(to_text(c));
  }
  Crew crew(4, command(words));
  for (std::size_t r = 0; r < 4; ++r) {
    ASSERT_EQ(crew.wait(r, kPatience), 0) << crew.output(r);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      expect_as_in_one_piece(line_after(crew.output(r), fmt::format("resumed {}", i)),
                             fmt::format("worker {}, {}", r, to_text(cases[i])));
    }
  }
}

TEST(Training, RandomNumbersBuffersAndTorchOptimizersGoOnToo) {
  Crew crew(3, command({"resumes-networks"}));
  for (std::size_t r = 0; r < 3; ++r) {
    ASSERT_EQ(crew.wait(r, kPatience), 0) << crew.output(r);
    for (const std::string algorithm : {"all-reduce", "dadam", "sgp", "local-sgd"}) {
      for (const std::string optimizer : {"fused", "torch"}) {
        const std::string name = fmt::format("network-{}-{}", algorithm, optimizer);
        expect_as_in_one_piece(line_after(crew.output(r), name), name);
      }
    }
    EXPECT_EQ(line_after(crew.output(r), "another-model"),
              "the checkpoint is of another model or optimizer: it has no parameter/values");
    EXPECT_EQ(line_after(crew.output(r), "another-optimizer"),
              "the checkpoint is of another model or optimizer: it has no "
              "optimizer/first_moment/first.weight");
    EXPECT_EQ(line_after(crew.output(r), "torch-optimizer"),
              "the checkpoint was made with a fused optimizer, and this is one of torch");
    EXPECT_EQ(line_after(crew.output(r), "another-shape"),
              "the checkpoint is of another model: parameter/first.weight is [6, 9] there and "
              "[9, 6] here");
  }
}

// What the engine holds is what counts: its sum is that of all updates, also where training was
// cut, and after it was resumed there. The models that workers had last seen have another.
TEST(Training, AtRestTheSumOfHeldModelsIsThatOfAllUpdates) {
  Crew crew(4, command({"rests", "starling", "then", "rests", "ad-psgd"}));
  for (const std::string algorithm : {"starling", "ad-psgd"}) {
    std::map<std::string, std::array<double, 3>> sums;  // own, held, consensus
    for (std::size_t r = 0; r < 4; ++r) {
      ASSERT_EQ(crew.wait(r, kPatience), 0) << crew.output(r);
      for (const std::string cut : {"whole 4", "whole 8", "whole 12", "whole 16", "whole 20",
                                    "resumed 12", "resumed 16", "resumed 20"}) {
        std::istringstream words(line_after(crew.output(r), algorithm + " " + cut));
        for (double& sum : sums[cut]) {
          double value = 0;
          words >> value;
          sum += value;
        }
      }
    }
    double apart = 0;
    for (const auto& [cut, sum] : sums) {
      SCOPED_TRACE(algorithm + ", " + cut);
      const int step = std::stoi(cut.substr(cut.find(' ')));
      if (step < 20 || algorithm == "starling") {
        EXPECT_NEAR(sum[1], 4 * 10.0 - step * (1 + 2 + 3 + 4), 1e-9);
      }
      EXPECT_NEAR(sum[2], sum[1], 1e-9);  // everybody has the consensus
      apart = std::max(apart, std::abs(sum[0] - sum[1]));
    }
    EXPECT_GT(apart, 0.1) << algorithm;
  }
}

// Those of eager-SGD's workers drift apart, for a slow one sees only the newest of the results that
// it has missed.
TEST(Training, ModelSyncsEndTheDriftOfEagerModels) {
  Crew crew(4, command({"drifts", "eager-solo", "then", "drifts", "eager-majority"}));
  double apart = 0;
  for (const std::string algorithm : {"eager-solo", "eager-majority"}) {
    std::map<int, std::set<std::string>> models;  // by step
    for (std::size_t r = 0; r < 4; ++r) {
      ASSERT_EQ(crew.wait(r, kPatience), 0) << crew.output(r);
      for (const int step : {7, 8, 15, 16, 23, 24}) {
        std::istringstream words(line_after(crew.output(r), fmt::format("{} {}", algorithm, step)));
        std::string model;
        double distance = -1;
        words >> model >> distance;
        ASSERT_FALSE(model.empty()) << crew.output(r);
        models[step].insert(model);
        if (step % 8 == 0) {
          EXPECT_EQ(distance, 0) << algorithm << ", step " << step;
        } else {
          apart = std::max(apart, distance);
        }
      }
    }
    for (const int step : {8, 16, 24}) {
      EXPECT_EQ(models[step].size(), 1) << algorithm << ", step " << step;
    }
  }
  EXPECT_GT(apart, 0.1);  // or there was nothing to end
}

// --- Numbers by hand -----------------------------------------------------------------------------

TEST(Training, TheGoldenTrajectory) {
  const std::vector<std::vector<double>> wanted = {{0, .1, .2, .5},
                                                   {.1, .39, .28, .75},
                                                   {.235, .306, .687, .94},
                                                   {.4375, .6924, .5923, 1.029},
                                                   {.5212, .59571, .95142, 1.20775},
                                                   {.68419, .942159, .841168, 1.280955}};
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("starling-golden-{}.json", getpid());
  std::ofstream(path) << R"({"workers": 4, "steps": [{"groups": [[0, 1], [2, 3]]},
                                                     {"groups": [[0, 2], [1, 3]]}]})";
  Crew crew(4, command({"golden", "file:" + path.string()}));
  for (std::size_t r = 0; r < 4; ++r) {
    ASSERT_EQ(crew.wait(r, kPatience), 0) << crew.output(r);
  }
  for (std::size_t t = 0; t < wanted.size(); ++t) {
    double mean = 0;
    for (std::size_t r = 0; r < 4; ++r) {
      const double value = std::stod(line_after(crew.output(r), fmt::format("value {}", t)));
      EXPECT_NEAR(value, wanted[t][r], 1e-12) << "worker " << r << " after update " << t;
      mean += value / 4;
    }
    EXPECT_NEAR(mean, 2 * (1 - std::pow(0.9, static_cast<double>(t + 1))), 1e-12);
  }
  std::filesystem::remove(path);
}

// --- What is unusual -----------------------------------------------------------------------------

class Unusual : public testing::TestWithParam<std::string> {};

TEST_P(Unusual, IsWhatTheReferenceComputes) { expect_as_reference(unusual_cases(GetParam()), 3); }

std::string test_name(const testing::TestParamInfo<std::string>& instance) {
  std::string name = instance.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Training, Unusual, testing::ValuesIn(kQuirks), test_name);

// The norm is that of all parameters, of the gradient that is applied: whatever the buckets, the
// scale of the loss and the weights of batches.
TEST(Training, ClippingIsExact) {
  expect_as_reference(clipped_cases(), 3);
  Case free = clipped_cases().front();
  free.clip = "none";
  EXPECT_NE(train_by_reference(free, 3), train_by_reference(clipped_cases().front(), 3))
      << "nothing was clipped";
}

// --- bf16 on the wire ----------------------------------------------------------------------------

TEST(Training, TheDeltaFormIsWhatTheReferenceComputes) { expect_as_reference(rounded_cases(), 4); }

TEST(Training, NeighboursExchangeModelsAsTheyAre) {
  Case exact = rounded_neighbours();
  exact.bf16 = false;
  EXPECT_EQ(printed_of(rounded_neighbours(), 3).fingerprints, train_by_reference(exact, 3));
}

// Four workers at 256, where neighbours in bf16 are 2 apart, take steps of 0.01: in the delta form
// they move as without rounding, while the mean of rounded models, put in place of the own, takes
// every step back.
TEST(Training, OverwritingByRoundedModelsWouldStopTraining) {
  const comm::KernelArithmetic arithmetic;
  const auto moved_by = [&](bool delta_form) {
    std::vector<std::vector<float>> models(4, std::vector<float>(1, 256.0F));
    for (int step = 0; step < 100; ++step) {
      float sum = 0;
      for (std::vector<float>& model : models) {
        std::vector<float> sent(1);
        arithmetic.through_bf16(comm::Type::Float32, comm::output(std::span(sent)).blob,
                                comm::input(std::span(std::as_const(model))).blob);
        sum += sent[0];
      }
      const std::vector<float> result = {sum};
      for (std::vector<float>& model : models) {
        comm::average_into(arithmetic, comm::output(std::span(model)),
                           comm::input(std::span(result)),
                           comm::input(std::span(std::as_const(model))),
                           {.of_result = 0.25, .of_own = 0, .divisor = 4}, delta_form);
        model[0] += 0.01F;
      }
    }
    return models[0][0] - 256.0F;
  };
  EXPECT_NEAR(moved_by(true), 1.0, 1e-2);
  EXPECT_NEAR(moved_by(false), 0.01, 1e-3);
}

// --- Evaluation ----------------------------------------------------------------------------------

TEST(Training, EvaluationChangesNothing) {
  Crew crew(3, command({"evaluates"}));
  std::map<std::string, std::array<double, 4>> sums;
  for (std::size_t r = 0; r < 3; ++r) {
    ASSERT_EQ(crew.wait(r, kPatience), 0) << crew.output(r);
    const std::string output = crew.output(r);
    for (const std::string row : {"all-reduce-none", "dadam-none", "wagma-none", "dadam-global"}) {
      EXPECT_EQ(line_after(output, row + " trained"), line_after(output, row + " evaluated"));
      std::istringstream words(line_after(output, row + " weight"));
      std::string word;
      double weight = 0;
      double mean = 0;
      double averaged_weight = 0;
      double averaged_mean = 0;
      words >> weight >> word >> mean >> word >> averaged_weight >> averaged_mean;
      ASSERT_TRUE(words) << output;
      sums[row][0] += weight / 3;
      sums[row][1] += mean / 3;
      sums[row][2] = averaged_weight;
      sums[row][3] = averaged_mean;
    }
  }
  for (const auto& [row, sum] : sums) {
    EXPECT_NEAR(sum[0], sum[2], 1e-6) << row << ": parameters are not averaged";
    EXPECT_NEAR(sum[1], sum[3], 1e-6) << row << ": statistics are not averaged";
  }
}

// --- Models that differ --------------------------------------------------------------------------

TEST(Training, TheFirstDifferenceIsNamedOnEveryWorker) {
  const std::map<std::string, std::string> said = {
      {"shape",
       "workers differ: worker 2 has parameter weight [5] Float, worker 0 has parameter "
       "weight [4] Float"},
      {"type",
       "workers differ: worker 2 has parameter weight [4] Double, worker 0 has parameter "
       "weight [4] Float"},
      {"name",
       "workers differ: worker 2 has parameter other [4] Float, worker 0 has parameter "
       "weight [4] Float"},
      {"frozen",
       "workers differ: worker 2 has parameter weight (frozen) [4] Float, worker 0 has "
       "parameter weight [4] Float"},
      {"more",
       "workers differ: worker 2 has parameter more [1] Float, worker 0 has buffer counts "
       "[1] Float"},
      {"buffer",
       "workers differ: worker 2 has buffer counts [2] Float, worker 0 has buffer "
       "counts [1] Float"}};
  std::vector<std::string> words = {"differs"};
  for (const auto& [what, text] : said) {
    words.push_back(what);
  }
  Crew crew(4, command(words));
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(crew.wait(r, kPatience), 0);
    for (const auto& [what, text] : said) {
      EXPECT_EQ(line_after(crew.output(r), what), text) << "worker " << r;
    }
  }
}

// --- Something happens in the middle -------------------------------------------------------------

void expect_sensible(const std::string& all, const std::string& algorithm) {
  const std::string output = line_after(all, algorithm + ":");
  const double before = number_after(output, "before");
  const double after = number_after(output, "after");
  EXPECT_TRUE(std::isfinite(after)) << output;
  EXPECT_LT(after, 0.5 * before) << output;
  EXPECT_LT(number_after(output, "consensus"), 0.5 * before) << output;
  EXPECT_LT(number_after(output, "distance"), 100) << output;
}

class Course : public testing::TestWithParam<std::string> {};

TEST_P(Course, SurvivorsOfAKilledWorkerFinishWithASensibleModel) {
  Crew crew(4, command({"course", GetParam(), "150"}));
  crew.wait_for(1, "step 40\n", kPatience);
  crew.signal(1, SIGKILL);
  for (const std::size_t r : {0U, 2U, 3U}) {
    EXPECT_EQ(crew.wait(r, kPatience), 0) << crew.output(r);
    expect_sensible(crew.output(r), GetParam());
    EXPECT_EQ(number_after(crew.output(r), "workers"), 3) << crew.output(r);
  }
}

// Nobody waits for it.
TEST_P(Course, WhatIsNotFiniteIsNamedAndNotSent) {
  Crew crew(3, command({"course", GetParam(), "60", "diverges"}));
  EXPECT_EQ(crew.wait(1, kPatience), 1);
  const std::string said = crew.output(1);
  EXPECT_NE(said.find("worker 1, step 30: a "), std::string::npos) << said;
  EXPECT_NE(said.find("of parameter values is not finite"), std::string::npos) << said;
  for (const std::size_t r : {0U, 2U}) {
    EXPECT_EQ(crew.wait(r, kPatience), 0) << crew.output(r);
    expect_sensible(crew.output(r), GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Training, Course,
                         testing::Values("all-reduce", "dadam", "wagma", "starling"), test_name);

TEST(Training, NobodyWaitsForAWorkerThatGaveUp) {
  for (const std::string algorithm : {"dadam", "wagma"}) {
    Crew crew(3, command({"course", algorithm, "60", "throws"}));
    EXPECT_EQ(crew.wait(1, kPatience), 1);
    EXPECT_NE(crew.output(1).find("the data of worker 1 is gone"), std::string::npos);
    for (const std::size_t r : {0U, 2U}) {
      EXPECT_EQ(crew.wait(r, kPatience), 0) << crew.output(r);
      expect_sensible(crew.output(r), algorithm);
    }
  }
}

TEST(Training, WhoHasNoMoreBatchesLeaves) {
  std::vector<std::string> words;
  for (const std::string algorithm : {"all-reduce", "dadam", "wagma", "starling"}) {
    words.insert(words.end(), {"course", algorithm, "120", "uneven", "then"});
  }
  Crew crew(4, command(words));
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(crew.wait(r, kPatience), 0) << crew.output(r);
    for (const std::string algorithm : {"all-reduce", "dadam", "wagma", "starling"}) {
      expect_sensible(crew.output(r), algorithm);
    }
  }
}

}  // namespace
}  // namespace starling::test
