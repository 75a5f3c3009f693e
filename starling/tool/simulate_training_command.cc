#include "starling/tool/simulate_training_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/interruption.h"
#include "starling/comm/trigger.h"
#include "starling/sim/training.h"
#include "starling/tool/compute_file.h"
#include "starling/tool/progress_line.h"
#include "starling/tool/suggest.h"
#include "starling/tool/trace_file.h"
#include "starling/tool/training_report.h"
#include "starling/topology/algorithm.h"

namespace starling::tool {
namespace {

using nlohmann::ordered_json;

// As training has it: parts of about this size.
constexpr std::uint64_t kBucket = std::uint64_t{25} << 20;

// What the command line says, before it makes sense.
struct Request {
  sim::TrainingOptions options;
  std::uint64_t steps = 100;
  std::string bytes = "100M";
  std::size_t buckets = 0;  // 0: of kBucket bytes
  std::string bandwidth = "10G";
  std::string local_bandwidth = "40G";
  std::string compute = "constant:0.3";
  double forward = ComputeTimes::kForward;
  std::string delay;
  std::uint64_t seed = 1;
  std::string trace;
  std::uint32_t trace_workers = 16;
  std::uint64_t trace_steps = 20;
  bool no_overlap = false;
  bool json = false;
  bool timing = false;
};

double rate_of(std::string_view option, const std::string& text) {
  const Bytes rate = parse_bytes(text);
  require(rate.value > 0, "{} must be more than 0", option);
  return static_cast<double>(rate.value);
}

void interpret_algorithm(comm::PlanOptions& plan) {
  require(plan.algorithm != "alone", "--algorithm alone averages nothing: there is no exchange");
  const topology::Algorithm& row = topology::find_algorithm(plan.algorithm);
  plan.algorithm = row.name;
  if (!plan.schedule.empty() && !plan.schedule.starts_with("file:")) {
    const std::vector<std::string> known(row.schedules.begin(), row.schedules.end());
    require(std::find(known.begin(), known.end(), plan.schedule) != known.end(), "{}",
            unknown(fmt::format("--schedule of {}", row.name), plan.schedule, known));
  }
  require(plan.peers == 1 || topology::has_peers(row, plan.schedule),
          "--peers is for sgp, overlapped-sgp and the schedules push and base-k");
}

void interpret(Request& r) {
  sim::TrainingOptions& o = r.options;
  sim::PortOptions& ports = o.network.ports;
  interpret_algorithm(o.plan);
  if (!o.plan.trigger.empty()) {
    static_cast<void>(comm::parse_trigger("--trigger", o.plan.trigger, ports.workers));
  }
  require(!std::isnan(r.forward), "--forward: {} is no part of a step", r.forward);
  require(ports.per_node <= ports.workers, "--per-node {} is more than the {} worker{} of the job",
          ports.per_node, ports.workers, ports.workers == 1 ? "" : "s");
  require(!o.plan.group_size || *o.plan.group_size <= ports.workers,
          "--group-size {} is more than the {} worker{} of the job", o.plan.group_size.value_or(0),
          ports.workers, ports.workers == 1 ? "" : "s");
  o.plan.steps = r.steps;
  o.plan.overlap = !r.no_overlap;
  o.plan.seed = r.seed;
  o.network.seed = r.seed;
  o.bytes = parse_bytes(r.bytes);
  require(o.bytes.value >= 4 && o.bytes.value % 4 == 0,
          "--bytes: '{}' is not a whole number of floats", r.bytes);
  o.buckets = r.buckets != 0 ? r.buckets : (o.bytes.value + kBucket - 1) / kBucket;
  require(r.buckets != 0 || o.buckets <= 254, "--bytes {} needs more than 254 buckets; see --help",
          r.bytes);
  require(o.buckets <= o.bytes.value / 4, "--buckets {} of a model of {} numbers", o.buckets,
          o.bytes.value / 4);
  ports.bandwidth = rate_of("--bandwidth", r.bandwidth);
  ports.local_bandwidth = rate_of("--local-bandwidth", r.local_bandwidth);
  o.compute = read_compute_times(r.compute, r.seed, r.forward);
  o.delay = Delay(r.delay, static_cast<std::uint32_t>(ports.workers), r.seed);
  if (!r.trace.empty()) {
    o.trace_workers = r.trace_workers;
    o.trace_steps = r.trace_steps;
  }
}

template <typename T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json echo(const Request& r) {
  const sim::TrainingOptions& o = r.options;
  const comm::Plan plan = [&] {
    comm::PlanOptions made = o.plan;
    made.workers = static_cast<std::uint32_t>(o.network.ports.workers);
    return comm::make_plan(made);
  }();
  const bool text = !o.plan.trigger.empty();
  return {{"algorithm", o.plan.algorithm},
          {"schedule", plan.schedule_name},
          {"workers", o.network.ports.workers},
          {"per_node", o.network.ports.per_node},
          {"group_size", or_null(o.plan.group_size)},
          {"sync_period", or_null(plan.steps.sync_period)},
          {"trigger", text ? ordered_json(o.plan.trigger) : ordered_json()},
          {"age_bound", plan.steps.trigger->age_bound},
          {"peers", o.plan.peers},
          {"overlap", o.plan.overlap},
          {"bytes", o.bytes.value},
          {"buckets", o.buckets},
          {"bandwidth", o.network.ports.bandwidth},
          {"latency", o.network.ports.latency},
          {"local_bandwidth", o.network.ports.local_bandwidth},
          {"local_latency", o.network.ports.local_latency},
          {"compute", r.compute},
          {"forward", r.forward},
          {"update", o.update},
          {"delay", r.delay},
          {"steps", r.steps},
          {"seed", r.seed}};
}

// Shows how far it is, now and then, and ends it when the user wants to.
class Watch {
 public:
  void operator()(const sim::TrainingProgress& progress) {
    Interruption::check_point();
    const WallTime now = std::chrono::steady_clock::now();
    if (now - shown_ > std::chrono::milliseconds(500)) {
      shown_ = now;
      line_.show(fmt::format("{:.1f} %, {:.1f} s of virtual time, {:.1f} million events",
                             100 * progress.done, progress.virtual_seconds,
                             static_cast<double>(progress.events) / 1e6));
    }
  }

 private:
  ProgressLine line_;
  WallTime shown_ = std::chrono::steady_clock::now();
};

void run(Request& r) {
  interpret(r);
  const ordered_json said = echo(r);
  std::ofstream trace;
  if (!r.trace.empty()) {
    trace.open(r.trace, std::ios::binary);
    require(trace.good(), "--trace {}: this file cannot be written", r.trace);
  }
  const WallTime begin = std::chrono::steady_clock::now();
  sim::TrainingResult result;
  {
    const Interruption interruption;
    Watch watch;
    r.options.progress = [&watch](const sim::TrainingProgress& progress) { watch(progress); };
    result = sim::simulate_training(r.options);
  }
  require(result.step_seconds > 0,
          "nothing takes any time: neither computing, nor updates, nor exchanges");
  const double took = seconds(std::chrono::steady_clock::now() - begin);
  const std::optional<double> wall = r.timing ? std::optional(took) : std::nullopt;
  if (!r.trace.empty()) {
    write_trace(trace, result.slices);
    trace.close();
    if (!trace) {
      throw Error(ErrorCode::Environment, fmt::format("{} could not be written", r.trace));
    }
  }
  fmt::print("{}", r.json ? training_json(said, result, wall).dump(2) + "\n"
                          : training_text(r.options, result, wall));
}

}  // namespace

void add_training_simulation(CLI::App& simulate) {
  auto r = std::make_shared<Request>();  // lives as long as the options that write to it
  comm::PlanOptions& plan = r->options.plan;
  sim::PortOptions& ports = r->options.network.ports;
  ports.workers = 16;
  CLI::App* c = &simulate;
  const CLI::Range count(1, 1'000'000);
  const CLI::Range time(0.0, 3600.0);
  c->add_option("--algorithm", plan.algorithm,
                "One of those of docs/schedules.md, such as starling, wagma, dadam, all-reduce")
      ->capture_default_str();
  c->add_option("--schedule", plan.schedule, "Who averages with whom; default: the algorithm's");
  c->add_option("--workers", ports.workers, "Number of workers")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  c->add_option("--per-node", ports.per_node, "Workers that share a network card")
      ->capture_default_str()
      ->check(count);
  c->add_option("--group-size", plan.group_size, "S; default: about the square root of the workers")
      ->check(count);
  c->add_option("--sync-period", plan.sync_period,
                "tau of wagma, H of local-sgd; default of both: 10")
      ->check(count);
  c->add_option("--trigger", plan.trigger,
                "all, first, first+SECONDS, first+learnt, majority, quorum:K, need");
  c->add_option("--age-bound", plan.age_bound, "Of starling: how old a contribution may be")
      ->check(CLI::Range(0, 1'000'000));
  c->add_option("--peers", plan.peers, "Of sgp: to how many workers each sends in a step")
      ->capture_default_str()
      ->check(count);
  c->add_option("--averaging", plan.averaging, "after or beside the update (d-psgd, wagma, local)");
  c->add_flag("--no-overlap", r->no_overlap, "Exchanges inside a step, not behind the next");
  c->add_option("--bytes", r->bytes, "Of the model, such as 400, 100M or 64Mi")
      ->capture_default_str();
  c->add_option("--buckets", r->buckets,
                "Equal parts of the model, each an exchange of its own; default: of 25 MiB")
      ->check(CLI::Range(1, 254));
  c->add_option("--bandwidth", r->bandwidth, "Of a card, each way, bytes per second")
      ->capture_default_str();
  c->add_option("--latency", ports.latency, "Between nodes, seconds")
      ->capture_default_str()
      ->check(time);
  c->add_option("--local-bandwidth", r->local_bandwidth, "Inside a node, bytes per second")
      ->capture_default_str();
  c->add_option("--local-latency", ports.local_latency, "Inside a node, seconds")
      ->capture_default_str()
      ->check(time);
  c->add_option("--compute", r->compute,
                "How long steps compute: constant:S, normal:MEAN,VARIANCE, lognormal:…, "
                "FORWARD:BACKWARD[:VARIATION], draw:NAME:MEAN, or a JSON file of step times")
      ->capture_default_str();
  c->add_option("--forward", r->forward, "Of whole steps, the part that is the forward pass")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  c->add_option("--update", r->options.update, "Seconds of an update of the model")
      ->capture_default_str()
      ->check(time);
  c->add_option("--delay", r->delay,
                "Who is late: COUNTxSECONDS, rank:R:SECONDS, ramp:S, rotating:A:B, draw:NAME:MEAN");
  c->add_option("--steps", r->steps, "Of each worker")->capture_default_str()->check(count);
  c->add_option("--seed", r->seed, "Same seed, same run")
      ->capture_default_str()
      ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  c->add_option("--trace", r->trace, "Write a timeline that Perfetto and chrome://tracing open");
  c->add_option("--trace-workers", r->trace_workers, "Workers in it")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  c->add_option("--trace-steps", r->trace_steps, "Steps in it")
      ->capture_default_str()
      ->check(count);
  c->add_flag("--timing", r->timing, "Also say how fast the simulation itself ran");
  c->add_flag("--json", r->json, "Print one JSON object (docs/commands.md)");
  c->callback([r, c] {
    if (c->get_subcommands().empty()) {
      run(*r);
    }
  });
}

void refuse_training_options(const CLI::App& simulate) {
  for (const CLI::Option* option : simulate.get_options()) {
    require(option->count() == 0, "{} before the subcommand is an option of training",
            option->get_name());
  }
}

}  // namespace starling::tool
