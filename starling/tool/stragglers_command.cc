#include "starling/tool/stragglers_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/units.h"
#include "starling/sim/stragglers.h"
#include "starling/tool/programs.h"
#include "starling/tool/progress_line.h"
#include "starling/topology/algorithm.h"

namespace starling::tool {
namespace {

using nlohmann::ordered_json;

struct Request {
  std::size_t workers = 16;
  std::vector<std::size_t> virtual_workers = {64, 256};
  std::vector<std::string> algorithms = {"wagma"};
  std::string bytes = "10M";
  std::uint64_t steps = 40;
  std::uint64_t step = 600;  // milliseconds
  std::uint32_t stragglers = 2;
  std::uint64_t delay = 320;  // milliseconds
  std::uint32_t sync_period = 10;
  bool json = false;
};

constexpr const char* kRival = "all-reduce";
constexpr int kMost = 1'000'000'000;  // of anything that is counted, or of milliseconds

struct Row {
  std::string kind;
  std::size_t workers = 0;
  std::vector<double> rates;  // steps per second: of the rival, then of the algorithms
};

std::vector<std::string> contestants(const Request& request) {
  std::vector<std::string> names = {kRival};
  names.insert(names.end(), request.algorithms.begin(), request.algorithms.end());
  return names;
}

sim::StragglerOptions options_of(const Request& request) {
  require(request.workers <= 1024, "--workers: {} is more than 1024", request.workers);
  for (const std::size_t workers : request.virtual_workers) {
    require(workers <= 4096, "--virtual-workers: {} is more than 4096", workers);
  }
  require(request.steps >= 1, "--steps: {} steps", request.steps);
  require(request.sync_period >= 1, "--sync-period: {}", request.sync_period);
  sim::StragglerOptions options;
  options.bytes = parse_bytes(request.bytes);
  require(options.bytes.value >= 4 && options.bytes.value % 4 == 0,
          "--bytes: '{}' is not a whole number of floats", request.bytes);
  options.steps = request.steps;
  options.step = 1e-3 * static_cast<double>(request.step);
  options.stragglers = request.stragglers;
  options.delay = 1e-3 * static_cast<double>(request.delay);
  options.sync_period = request.sync_period;
  for (const std::string& name : request.algorithms) {
    topology::find_algorithm(name);
  }
  return options;
}

Row measure_processes(const Request& request, const sim::StragglerOptions& options) {
  launch::Options start;
  start.workers = request.workers;
  start.command = {find_program("rounds", "straggler_worker"),
                   fmt::format("{}", fmt::join(contestants(request), ",")),
                   std::to_string(options.bytes.value),
                   std::to_string(request.steps),
                   std::to_string(request.step),
                   std::to_string(request.stragglers),
                   std::to_string(request.delay),
                   std::to_string(request.sync_period)};
  Row row{.kind = "processes", .workers = request.workers, .rates = {}};
  run_program(start, fmt::format("{} workers", request.workers), [&](const auto& line) {
    row.rates.push_back(static_cast<double>(request.steps) /
                        line.at("seconds").template get<double>());
  });
  return row;
}

Row measure_virtual(const Request& request, sim::StragglerOptions options, std::size_t workers) {
  Row row{.kind = "virtual", .workers = workers, .rates = {}};
  sim::PortOptions ports;
  ports.workers = workers;
  for (const std::string& name : contestants(request)) {
    options.algorithm = name;
    row.rates.push_back(static_cast<double>(options.steps) /
                        sim::simulate_stragglers(ports, options));
  }
  return row;
}

void print_table(const Request& request, const std::vector<Row>& rows) {
  fmt::print(
      "Steps of {} ms; at each, {} workers drawn anew take {} ms more; a model of {}; everybody "
      "averages\nevery {} steps. Steps per second, and how many times those of {}.\n\n",
      request.step, request.stragglers, request.delay, to_string(parse_bytes(request.bytes)),
      request.sync_period, kRival);
  fmt::print("{:<9} {:>7}", "", "workers");
  for (const std::string& name : contestants(request)) {
    fmt::print("  {:>16}", name);
  }
  fmt::print("\n");
  for (const Row& row : rows) {
    fmt::print("{:<9} {:>7}", row.kind, row.workers);
    for (std::size_t i = 0; i < row.rates.size(); ++i) {
      fmt::print("  {:>16}", i == 0 ? fmt::format("{:.3f}", row.rates[i])
                                    : fmt::format("{:.3f} (x {:.2f})", row.rates[i],
                                                  row.rates[i] / row.rates[0]));
    }
    fmt::print("\n");
  }
}

ordered_json json_of(const Request& request, const std::vector<Row>& rows) {
  const std::vector<std::string> names = contestants(request);
  ordered_json list = ordered_json::array();
  for (const Row& row : rows) {
    ordered_json& one = list.emplace_back();
    one["kind"] = row.kind;
    one["workers"] = row.workers;
    for (std::size_t i = 0; i < row.rates.size(); ++i) {
      one["steps_per_second"][names[i]] = row.rates[i];
      one["ratio"][names[i]] = row.rates[i] / row.rates[0];
    }
  }
  return list;
}

void run(const Request& request) {
  const sim::StragglerOptions options = options_of(request);
  std::vector<Row> rows;
  {
    ProgressLine line;
    if (request.workers > 0) {
      line.show(fmt::format("{} workers on this machine", request.workers));
      rows.push_back(measure_processes(request, options));
    }
    for (const std::size_t workers : request.virtual_workers) {
      if (workers > 0) {
        line.show(fmt::format("{} workers in virtual time", workers));
        rows.push_back(measure_virtual(request, options, workers));
      }
    }
  }
  if (request.json) {
    fmt::print("{}\n", json_of(request, rows).dump());
  } else {
    print_table(request, rows);
  }
}

}  // namespace

void add_stragglers_command(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "stragglers", "Some workers are late at every step: steps per second, against all-reduce");
  auto request = std::make_shared<Request>();
  command->add_option("--workers", request->workers, "Processes on this machine; 0: none")
      ->capture_default_str();
  command
      ->add_option("--virtual-workers", request->virtual_workers,
                   "Numbers of workers in virtual time, at 10 GB/s and 5 us; 0: none")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--algorithms", request->algorithms, "What is compared with all-reduce")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--bytes", request->bytes, "Size of the model")->capture_default_str();
  command->add_option("--steps", request->steps, "Steps of each worker")
      ->check(CLI::Range(0, kMost))
      ->capture_default_str();
  command->add_option("--step", request->step, "Milliseconds of a step")
      ->check(CLI::Range(0, kMost))
      ->capture_default_str();
  command->add_option("--stragglers", request->stragglers, "How many are late at a step")
      ->check(CLI::Range(0, kMost))
      ->capture_default_str();
  command->add_option("--delay", request->delay, "How late, in milliseconds")
      ->check(CLI::Range(0, kMost))
      ->capture_default_str();
  command->add_option("--sync-period", request->sync_period, "Everybody averages that often")
      ->check(CLI::Range(0, kMost))
      ->capture_default_str();
  command->add_flag("--json", request->json, "Print JSON");
  command->callback([request] { run(*request); });
}

}  // namespace starling::tool
