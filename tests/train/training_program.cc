// A worker that trains torch models in ways that training_test.cc compares: with a reference, with
// itself, or with what users are promised. Prints one line per result.
//     training_program cases CASE …        the fingerprint of the model after each case (case.h)
//     training_program golden SCHEDULE     the values of the golden trajectory
//     training_program evaluates           dropout and batch norm, with and without evaluation
//     training_program resumes CASE …      each case in one piece, and in two
//     training_program resumes-networks    the same with dropout, batch norm and torch's optimizers
//     training_program rests ALGORITHM     the own model, the one at rest and the consensus;
//     resumed training_program drifts ALGORITHM    own models that become their mean at every 8th
//     step training_program differs WHAT …      models that are different on worker 2
//     training_program course ALGORITHM STEPS [uneven | diverges | throws]
// Several of these, one after the other, with "then" between them.
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/connect.h"
#include "starling/train/data_parallel.h"
#include "tests/train/case.h"
#include "tests/workers/guarded.h"

namespace starling::test {
namespace {

using comm::Workers;

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

at::Tensor half_square(const at::Tensor& distance) { return 0.5 * (distance * distance).sum(); }

std::uint64_t fingerprint(torch::nn::Module& model) {
  Fingerprint print;
  for (const auto& item : model.named_parameters()) {
    if (item.key() == "tied") {
      continue;  // has been there
    }
    const at::Tensor plain = item.value().detach().contiguous();
    print.add({static_cast<const std::byte*>(plain.data_ptr()), plain.nbytes()});
  }
  return print.value();
}

// --- The model of a case -------------------------------------------------------------------------

at::ScalarType scalar_of(Kind kind) {
  return kind == Kind::Double ? at::kDouble : kind == Kind::Float ? at::kFloat : at::kBFloat16;
}

class CaseModel final : public torch::nn::Module {
 public:
  CaseModel(const Case& c, std::size_t worker) : case_(c), worker_(worker) {
    for (std::size_t p = 0; p < shapes().size(); ++p) {
      at::Tensor values = tensor(p, [&](std::size_t i) { return initial(worker, p, i); });
      values.set_requires_grad(!is_frozen(c, p));
      tensors_.push_back(register_parameter(shapes()[p].name, values, values.requires_grad()));
    }
    if (c.quirk == "twice") {
      register_parameter("tied", tensors_[3]);
    }
  }

  // Half the squared distance from the targets, of the `term`th of the micro-batches or, without
  // one, of all terms.
  at::Tensor loss(std::uint64_t step, std::optional<std::size_t> term = std::nullopt) {
    at::Tensor sum = torch::zeros({}, at::kDouble);
    for (std::size_t p = 0; p < tensors_.size(); ++p) {
      const std::size_t terms = terms_of(case_, worker_, step, p);
      for (std::size_t k = term.value_or(0); k < (term ? *term + 1 : terms); ++k) {
        const at::Tensor wanted =
            tensor(p, [&](std::size_t i) { return target(worker_, step, k, p, i); });
        sum = sum + half_square(tensors_[p] - wanted);
      }
    }
    return overflows(case_, worker_, step) ? sum * std::numeric_limits<double>::infinity() : sum;
  }

 private:
  template <typename Value>
  at::Tensor tensor(std::size_t p, const Value& value) const {
    at::Tensor wide = torch::empty(shapes()[p].sizes, at::kDouble);
    for (std::size_t i = 0; i < shapes()[p].elements(); ++i) {
      wide.data_ptr<double>()[i] = value(i);
    }
    // As the reference does: from double to what is computed in, then to the parameter's own type.
    return wide.to(case_.wide ? at::kDouble : at::kFloat).to(scalar_of(kind_of(case_, p)));
  }

  Case case_;
  std::size_t worker_;
  std::vector<at::Tensor> tensors_;
};

train::Options options_of(const Case& c, const Workers& workers) {
  train::Options options;
  options.algorithm = c.algorithm;
  options.schedule = c.schedule;
  options.bucket_bytes = c.bucket;
  options.steps = c.steps;
  options.clip = c.clip == "global"    ? train::Clip::Global
                 : c.clip == "delayed" ? train::Clip::Delayed
                                       : train::Clip::None;
  options.clip_norm = kClipNorm;
  options.bf16 = c.bf16;
  options.peers = c.peers;
  options.averaging = c.averaging;
  if (c.period > 0) {
    options.sync_period = c.period;
  }
  options.batch = kBatch;
  options.weigh_samples = c.quirk == "samples";
  options.non_finite = c.quirk == "skips" ? train::NonFinite::Skip : train::NonFinite::Stop;
  if (!c.ledger.empty()) {
    options.ledger = fmt::format("{}-{}.jsonl", c.ledger, workers.rank());
  }
  return options;
}

train::Optimizer fused_optimizer_of(const Case& c) {
  return std::visit([](const auto& config) { return train::Optimizer(config); }, optimizer_of(c));
}

// The steps [first, end).
void take_steps(train::DataParallel& replica, CaseModel& model, const Case& c, std::size_t self,
                std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t step = first; step < end; ++step) {
    if (c.quirk == "evaluates" && step % 5 == 0) {
      replica.with_consensus_model([&] {
        model.eval();
        torch::rand({3});
        model.loss(step);
      });
    }
    train::Batch batch;
    batch.samples = samples(c, self, step);
    const double scale = c.quirk == "scaled" || c.quirk == "skips" ? 1024 : 1;
    batch.gradient_scale = 1 / scale;
    if (c.quirk == "micro-batches") {
      replica.accumulate([&] { return model.loss(step, 0); });
      replica.accumulate([&] { return model.loss(step, 1); });
    }
    const train::StepReport report = replica.step(
        [&] { return c.quirk == "micro-batches" ? model.loss(step, 2) : scale * model.loss(step); },
        batch);
    check(report.skipped == overflows(c, self, step), "step {} was {}skipped", step,
          report.skipped ? "" : "not ");
  }
}

void run_case(Workers& workers, const Case& c, std::size_t number) {
  const std::size_t self = workers.rank().index();
  CaseModel model(c, self);
  train::DataParallel replica(model, workers, options_of(c, workers), fused_optimizer_of(c));
  take_steps(replica, model, c, self, 0, c.steps);
  replica.finish();
  say(fmt::format("case {} {:016x} {} buckets", number, fingerprint(model), replica.buckets()));
}

void run_cases(Workers& workers, const std::vector<std::string>& texts) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    run_case(workers, parse_case(texts[i]), i);
  }
}

// --- The golden trajectory -----------------------------------------------------------------------

class Numbers final : public torch::nn::Module {
 public:
  explicit Numbers(const at::Tensor& start) { values = register_parameter("values", start); }
  at::Tensor values;
};

void run_golden(Workers& workers, const std::string& schedule) {
  Numbers model(torch::zeros({1}, at::kDouble));
  train::Options options;
  options.algorithm = "dadam";
  options.schedule = schedule;
  options.steps = 6;
  train::DataParallel replica(model, workers, options, train::SGD{.lr = 0.1});
  const double wanted = std::vector{0.0, 1.0, 2.0, 5.0}.at(workers.rank().index());
  for (int t = 0; t < 6; ++t) {
    replica.step([&] { return half_square(model.values - wanted); });
    say(fmt::format("value {} {:.17g}", t, model.values.item<double>()));
  }
  replica.finish();
}

// --- Evaluation ----------------------------------------------------------------------------------

class Network final : public torch::nn::Module {
 public:
  explicit Network(std::size_t worker) {
    first = register_module("first", torch::nn::Linear(6, 9));
    norm = register_module("norm", torch::nn::BatchNorm1d(9));
    dropout = register_module("dropout", torch::nn::Dropout(0.3));
    last = register_module("last", torch::nn::Linear(9, 2));
    norm->running_mean.fill_(static_cast<double>(worker));
  }
  at::Tensor forward(const at::Tensor& x) {
    return last->forward(dropout->forward(torch::relu(norm->forward(first->forward(x)))));
  }
  torch::nn::Linear first{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout dropout{nullptr};
  torch::nn::Linear last{nullptr};
};

double first_of(const at::Tensor& tensor) { return tensor.flatten()[0].item<double>(); }

void run_evaluation(Workers& workers, const std::string& algorithm, const std::string& clip,
                    bool evaluates) {
  torch::manual_seed(1 + workers.rank().value);
  Network model(workers.rank().index());
  train::Options options;
  options.algorithm = algorithm;
  options.trigger = algorithm == "wagma" ? "all" : "";
  options.steps = 20;
  options.bucket_bytes = 100;
  options.clip = clip == "global" ? train::Clip::Global : train::Clip::None;
  options.clip_norm = 0.1;
  train::DataParallel replica(model, workers, options, train::AdamW{.lr = 0.01});
  check(first_of(model.norm->running_mean) == 0, "buffers do not begin as those of worker 0");
  for (int step = 0; step < 20; ++step) {
    if (evaluates && step % 5 == 0) {
      replica.with_consensus_model([&] {
        model.forward(torch::randn({8, 6}));  // moves statistics, counters and random numbers
        model.eval();
        model.forward(torch::randn({8, 6}));
      });
    }
    replica.step([&] {
      const at::Tensor x = torch::randn({8, 6});
      return half_square(model.forward(x) - x.narrow(1, 0, 2));
    });
  }
  replica.finish();
  Fingerprint all;
  const std::uint64_t parameters = fingerprint(model);
  all.add(std::as_bytes(std::span(&parameters, 1)));
  for (const at::Tensor& buffer : model.buffers()) {
    all.add({static_cast<const std::byte*>(buffer.data_ptr()), buffer.nbytes()});
  }
  const double drawn = first_of(torch::rand({1}));
  all.add(std::as_bytes(std::span(&drawn, 1)));
  double averaged_weight = 0;
  double averaged_mean = 0;
  const double weight = first_of(model.first->weight);
  const double mean = first_of(model.norm->running_mean);
  replica.with_consensus_model([&] {
    averaged_weight = first_of(model.first->weight);
    averaged_mean = first_of(model.norm->running_mean);
  });
  check(weight == first_of(model.first->weight) && mean == first_of(model.norm->running_mean),
        "the own model is not back");
  say(fmt::format("{}-{} {} {:016x}", algorithm, clip, evaluates ? "evaluated" : "trained",
                  all.value()));
  say(fmt::format("{}-{} weight {:.9g} mean {:.9g} averaged {:.9g} {:.9g}", algorithm, clip, weight,
                  mean, averaged_weight, averaged_mean));
}

void run_evaluations(Workers& workers) {
  for (const std::string algorithm : {"all-reduce", "dadam", "wagma"}) {
    for (const bool evaluates : {false, true}) {
      run_evaluation(workers, algorithm, "none", evaluates);
    }
  }
  run_evaluation(workers, "dadam", "global", false);
  run_evaluation(workers, "dadam", "global", true);
}

// --- Training in two pieces ----------------------------------------------------------------------

// In one piece, and in two with a new model in between that has nothing but the state:
// fingerprints.
void run_resumed(Workers& workers, const Case& c, std::size_t number) {
  const std::size_t self = workers.rank().index();
  const auto train = [&](std::uint64_t end, std::shared_ptr<const train::State> before) {
    CaseModel model(c, self);
    for (const at::Tensor& values : model.parameters()) {
      values.detach().mul_(before ? 0.5 : 1);
    }
    train::Options options = options_of(c, workers);
    options.steps = end;
    const std::uint64_t first = before ? before->step : 0;
    options.resume = std::move(before);
    train::DataParallel replica(model, workers, options, fused_optimizer_of(c));
    take_steps(replica, model, c, self, first, end);
    auto state = std::make_shared<const train::State>(replica.state());
    replica.finish();
    return std::pair(fingerprint(model), state);
  };
  const std::uint64_t whole = train(c.steps, nullptr).first;
  const std::uint64_t half = c.steps / 2 + 1;
  const auto [before, state] = train(half, nullptr);
  check(
      state->step == half && state->samples == static_cast<double>(half * workers.size()) * kBatch,
      "a state after {} steps", state->step);
  const auto [resumed, last] = train(c.steps, state);
  check(last->step == c.steps, "a state after {} steps", last->step);
  say(fmt::format("resumed {} {:016x} {:016x} {:016x}", number, whole, resumed, before));
}

train::Optimizer network_optimizer(const std::string& name) {
  if (name == "fused") {
    return train::AccumAdamW{.lr = 0.01};
  }
  return train::TorchOptimizer{
      [](std::vector<at::Tensor> parameters) -> std::unique_ptr<torch::optim::Optimizer> {
        return std::make_unique<torch::optim::Adam>(std::move(parameters),
                                                    torch::optim::AdamOptions(0.01).amsgrad(true));
      }};
}

// Data and dropout are drawn from torch's generator: it goes on where it stood. Returns everything
// that a step may have moved.
void run_resumed_network(Workers& workers, const std::string& algorithm,
                         const std::string& optimizer) {
  const auto train = [&](std::uint64_t end, std::shared_ptr<const train::State> before) {
    torch::manual_seed((before ? 100 : 1) + workers.rank().value);
    Network model(workers.rank().index());
    train::Options options;
    options.algorithm = algorithm;
    options.steps = end;
    options.bucket_bytes = 100;
    options.clip = train::Clip::Delayed;
    options.clip_norm = 0.5;
    options.learning_rate = train::warmup_cosine(10, 100);
    const std::uint64_t first = before ? before->step : 0;
    options.resume = std::move(before);
    train::DataParallel replica(model, workers, options, network_optimizer(optimizer));
    for (std::uint64_t step = first; step < end; ++step) {
      replica.step([&] {
        const at::Tensor x = torch::randn({8, 6});
        return half_square(model.forward(x) - x.narrow(1, 0, 2));
      });
    }
    auto state = std::make_shared<const train::State>(replica.state());
    replica.finish();
    Fingerprint all;
    for (const train::Stored& tensor : state->tensors) {
      if (tensor.name != "torch_optimizer") {  // names its tensors by where they lie
        all.add(tensor.bytes);
      }
    }
    return std::pair(all.value(), state);
  };
  const std::uint64_t whole = train(15, nullptr).first;
  const auto [before, state] = train(6, nullptr);
  const std::uint64_t resumed = train(15, state).first;
  say(fmt::format("network-{}-{} {:016x} {:016x} {:016x}", algorithm, optimizer, whole, resumed,
                  before));
}

// A state of another model or optimizer.
void run_refused(Workers& workers) {
  const auto refusal = [&](const std::string& what, torch::nn::Module& model,
                           const train::State& state, const train::Optimizer& optimizer) {
    train::Options options;
    options.algorithm = "all-reduce";
    options.resume = std::make_shared<const train::State>(state);
    try {
      const train::DataParallel replica(model, workers, options, optimizer);
      say(fmt::format("{} taken", what));
    } catch (const Error& e) {
      check(e.code() == ErrorCode::Input, "another kind of error");
      say(fmt::format("{} {}", what, e.what()));
    }
  };
  Network model(0);
  train::State state;
  {
    train::DataParallel replica(model, workers, {.algorithm = "all-reduce"}, train::SGD{});
    replica.step([&] { return half_square(model.forward(torch::ones({8, 6}))); });
    state = replica.state();
  }
  Numbers other(torch::zeros({3}));
  refusal("another-model", other, state, train::SGD{});
  refusal("another-optimizer", model, state, train::Adam{});
  refusal("torch-optimizer", model, state, network_optimizer("torch"));
  train::State bent = state;
  std::swap(bent.tensors.front().shape.front(), bent.tensors.front().shape.back());
  refusal("another-shape", model, bent, train::SGD{});
}

void run_resumed_networks(Workers& workers) {
  for (const std::string algorithm : {"all-reduce", "dadam", "sgp", "local-sgd"}) {
    for (const std::string optimizer : {"fused", "torch"}) {
      run_resumed_network(workers, algorithm, optimizer);
    }
  }
  run_refused(workers);
}

// --- At rest -------------------------------------------------------------------------------------

// Every step of worker r takes r + 1 off a number that begins as 10. Worker 3 is slow, so that the
// others come to a halt long before it.
void run_rests(Workers& workers, const std::string& algorithm) {
  const std::uint32_t self = workers.rank().value;
  train::Options options;
  options.algorithm = algorithm;
  options.group_size = 2;
  options.steps = 20;
  const auto train = [&](const std::string& piece, std::shared_ptr<const train::State> before) {
    Numbers model(torch::full({1}, 10.0, at::kDouble));
    const std::uint64_t first = before ? before->step : 0;
    options.resume = std::move(before);
    train::DataParallel replica(model, workers, options, train::SGD{.lr = 1});
    auto state = std::make_shared<train::State>();
    for (std::uint64_t step = first; step < *options.steps; ++step) {
      replica.step([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(self == 3 ? 20 : 1));
        return (self + 1.0) * model.values.sum();
      });
      if ((step + 1) % 4 != 0) {
        continue;
      }
      const double own = first_of(model.values);
      double consensus = 0;
      train::State now;
      replica.at_rest([&] {
        replica.with_consensus_model([&] { consensus = first_of(model.values); });
        now = replica.state();
      });
      check(own == first_of(model.values), "the own model is not back");
      double held = 0;
      std::memcpy(&held, now.find("parameter/values")->bytes.data(), sizeof(held));
      say(fmt::format("{} {} {} {:.17g} {:.17g} {:.17g}", algorithm, piece, step + 1, own, held,
                      consensus));
      if (step + 1 == 8) {
        *state = std::move(now);
      }
    }
    replica.finish();
    return state;
  };
  train("resumed", train("whole", nullptr));
}

// --- Models that drift apart
// -----------------------------------------------------------------------

// Every step of worker r takes r + 1 off a number that begins as 10; worker 3 is slow. What it has
// missed of the others' rounds is gone, so models differ.
void run_drifts(Workers& workers, const std::string& algorithm) {
  const std::uint32_t self = workers.rank().value;
  Numbers model(torch::full({1}, 10.0, at::kDouble));
  train::Options options;
  options.algorithm = algorithm;
  options.steps = 24;
  options.model_sync = 8;
  train::DataParallel replica(model, workers, options, train::SGD{.lr = 1});
  for (std::uint64_t step = 0; step < *options.steps; ++step) {
    replica.step([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(self == 3 ? 20 : 1));
      return (self + 1.0) * model.values.sum();
    });
    if (step % 8 >= 6) {
      const train::Consensus consensus = replica.with_consensus_model([] {});
      say(fmt::format("{} {} {:.17g} {:.17g}", algorithm, step + 1, first_of(model.values),
                      consensus.distance));
    }
  }
  replica.finish();
}

// --- Models that differ --------------------------------------------------------------------------

class Odd final : public torch::nn::Module {
 public:
  Odd(const std::string& what, bool odd) {
    register_parameter("same", torch::zeros({3}));
    const at::Tensor values = torch::zeros({odd && what == "shape" ? 5 : 4},
                                           odd && what == "type" ? at::kDouble : at::kFloat);
    register_parameter(odd && what == "name" ? "other" : "weight", values,
                       !(odd && what == "frozen"));
    if (odd && what == "more") {
      register_parameter("more", torch::zeros({1}));
    }
    register_buffer("counts", torch::zeros({odd && what == "buffer" ? 2 : 1}));
  }
};

void run_difference(Workers& workers, const std::string& what) {
  Odd model(what, workers.rank().value == 2);
  try {
    const train::DataParallel replica(model, workers, {}, train::SGD{});
  } catch (const Error& e) {
    check(e.code() == ErrorCode::Mismatch, "another kind of error");
    say(fmt::format("{} {}", what, e.what()));
  }
}

// --- A course that something happens to ----------------------------------------------------------

void run_course(Workers& workers, const std::string& algorithm, std::uint64_t steps,
                const std::string& event) {
  constexpr std::int64_t kElements = 500;
  const std::uint32_t self = workers.rank().value;
  torch::manual_seed(self);
  Numbers model(torch::full({kElements}, 10.0, at::kFloat));
  train::Options options;
  options.algorithm = algorithm;
  options.bucket_bytes = 600;
  if (event != "uneven") {
    options.steps = steps;
  } else {
    steps -= 20 * self;
  }
  const double wanted = static_cast<double>(self);
  const auto loss = [&] { return half_square(model.values - wanted) / double{kElements}; };
  train::DataParallel replica(model, workers, options, train::SGD{.lr = 0.05 * kElements});
  const double before = loss().item<double>();
  for (std::uint64_t step = 0; step < steps; ++step) {
    replica.step([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(self == 3 ? 2 : 1));
      const bool now = self == 1 && step == steps / 2;
      require(!now || event != "throws", "the data of worker 1 is gone");
      at::Tensor with_noise = loss() + (model.values * torch::randn({kElements})).sum() * 1e-4;
      return now && event == "diverges" ? with_noise * std::nan("") : with_noise;
    });
    if (step % 10 == 9) {
      say(fmt::format("step {}", step + 1));
    }
  }
  replica.finish();
  const std::size_t left = replica.totals().workers;
  double consensus_loss = 0;
  const train::Consensus consensus =
      replica.with_consensus_model([&] { consensus_loss = loss().item<double>(); });
  say(fmt::format("{}: before {:.9g} after {:.9g} consensus {:.9g} distance {:.9g} workers {}",
                  algorithm, before, loss().item<double>(), consensus_loss, consensus.distance,
                  left));
}

void run(Workers& workers, const std::vector<std::string>& words) {
  require(!words.empty(), "training_program cases | golden | evaluates | differs | course …");
  if (words[0] == "cases") {
    run_cases(workers, {words.begin() + 1, words.end()});
  } else if (words[0] == "resumes") {
    for (std::size_t i = 1; i < words.size(); ++i) {
      run_resumed(workers, parse_case(words[i]), i - 1);
    }
  } else if (words[0] == "resumes-networks") {
    run_resumed_networks(workers);
  } else if (words[0] == "rests") {
    run_rests(workers, words.at(1));
  } else if (words[0] == "drifts") {
    run_drifts(workers, words.at(1));
  } else if (words[0] == "golden") {
    run_golden(workers, words.at(1));
  } else if (words[0] == "evaluates") {
    run_evaluations(workers);
  } else if (words[0] == "differs") {
    for (const std::string& what : std::vector(words.begin() + 1, words.end())) {
      run_difference(workers, what);
    }
  } else {
    run_course(workers, words.at(1), std::stoull(words.at(2)), words.size() > 3 ? words[3] : "");
  }
}

int main_of(int argc, char** argv) {
  torch::set_num_threads(1);
  const auto workers = comm::connect();
  for (char** word = argv + 1; word < argv + argc;) {
    char** end = std::find(word, argv + argc, std::string_view("then"));
    run(*workers, {word, end});
    word = end == argv + argc ? end : end + 1;
  }
  return 0;
}

}  // namespace
}  // namespace starling::test

int main(int argc, char** argv) {
  return starling::test::guarded(starling::test::main_of, argc, argv);
}
