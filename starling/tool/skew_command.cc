#include "starling/tool/skew_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/units.h"
#include "starling/sim/skew.h"
#include "starling/tool/programs.h"
#include "starling/tool/progress_line.h"

namespace starling::tool {
namespace {

using nlohmann::ordered_json;

struct Request {
  std::size_t workers = 8;
  std::size_t virtual_workers = 32;
  std::vector<std::string> bytes = {"64", "1K", "64K", "1M", "4M"};
  int rounds = 16;
  double spacing = 1;  // milliseconds
  bool json = false;
};

struct Row {
  std::string kind;
  std::size_t workers = 0;
  std::size_t bytes = 0;
  sim::CallTimes times;
};

std::vector<std::size_t> sizes_of(const Request& request) {
  for (const std::size_t workers : {request.workers, request.virtual_workers}) {
    require(workers <= 1024, "{} workers: it is at most 1024", workers);
  }
  require(request.rounds >= 1, "--rounds: {} rounds", request.rounds);
  require(request.spacing >= 0, "--spacing: {} ms", request.spacing);
  std::vector<std::size_t> sizes;
  for (const std::string& text : request.bytes) {
    sizes.push_back(parse_bytes(text).value);
    require(sizes.back() >= 4 && sizes.back() % 4 == 0,
            "--bytes: '{}' is not a whole number of floats", text);
  }
  return sizes;
}

void measure_processes(const Request& request, const std::vector<std::size_t>& sizes,
                       std::vector<Row>& rows) {
  launch::Options options;
  options.workers = request.workers;
  options.command = {find_program("rounds", "skew_worker"),
                     "--bytes",
                     fmt::format("{}", fmt::join(sizes, ",")),
                     "--repetitions",
                     fmt::format("{}", fmt::join(std::vector(sizes.size(), request.rounds), ",")),
                     "--warmup",
                     "4",
                     "--spacing",
                     fmt::format("{:.0f}", request.spacing * 1e3)};
  run_program(options, fmt::format("{} workers", request.workers), [&](const auto& line) {
    rows.push_back(
        {.kind = "processes",
         .workers = request.workers,
         .bytes = line.at("bytes"),
         .times = {.blocking = line.at("blocking"), .wait_avoiding = line.at("wait_avoiding")}});
  });
}

void measure_virtual(const Request& request, const std::vector<std::size_t>& sizes,
                     std::vector<Row>& rows) {
  for (const std::size_t bytes : sizes) {
    sim::SkewOptions options;
    options.bytes = Bytes{bytes};
    options.calls = request.rounds;
    options.spacing = request.spacing * 1e-3;
    sim::PortOptions ports;
    ports.workers = request.virtual_workers;
    rows.push_back({.kind = "virtual",
                    .workers = request.virtual_workers,
                    .bytes = bytes,
                    .times = simulate_calls(ports, options)});
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double ratio(const Row& row) {
  return sim::mean(row.times.blocking) / sim::mean(row.times.wait_avoiding);
}

void print_table(const Request& request, const std::vector<Row>& rows) {
  fmt::print(
      "Worker r arrives r x {} ms late. From arrival to result, microseconds, mean (median) of "
      "all\n"
      "calls: an all-reduce that waits for everyone, and wait-avoiding groups. Processes on this\n"
      "machine; virtual workers at 10 GB/s and 5 us.\n\n",
      request.spacing);
  fmt::print("{:<9} {:>7} {:>9}  {:>20} {:>20}  {}\n", "", "workers", "bytes", "blocking",
             "wait-avoiding", "ratio");
  const auto cell = [](const std::vector<double>& seconds) {
    return fmt::format("{:.1f} ({:.1f})", sim::mean(seconds) * 1e6, median(seconds) * 1e6);
  };
  for (const Row& row : rows) {
    fmt::print("{:<9} {:>7} {:>9}  {:>20} {:>20}  x {:.1f}\n", row.kind, row.workers,
               to_string(Bytes{row.bytes}), cell(row.times.blocking), cell(row.times.wait_avoiding),
               ratio(row));
  }
}

ordered_json json_of(const std::vector<Row>& rows) {
  ordered_json list = ordered_json::array();
  for (const Row& row : rows) {
    list.push_back({{"kind", row.kind},
                    {"workers", row.workers},
                    {"bytes", row.bytes},
                    {"blocking_seconds", sim::mean(row.times.blocking)},
                    {"blocking_p50_seconds", median(row.times.blocking)},
                    {"wait_avoiding_seconds", sim::mean(row.times.wait_avoiding)},
                    {"wait_avoiding_p50_seconds", median(row.times.wait_avoiding)},
                    {"ratio", ratio(row)},
                    {"calls", row.times.blocking.size()}});
  }
  return list;
}

void run(const Request& request) {
  const std::vector<std::size_t> sizes = sizes_of(request);
  std::vector<Row> rows;
  {
    ProgressLine line;
    if (request.workers > 0) {
      line.show(fmt::format("{} workers on this machine", request.workers));
      measure_processes(request, sizes, rows);
    }
    if (request.virtual_workers > 0) {
      line.show(fmt::format("{} workers in virtual time", request.virtual_workers));
      measure_virtual(request, sizes, rows);
    }
  }
  if (request.json) {
    fmt::print("{}\n", json_of(rows).dump());
  } else {
    print_table(request, rows);
  }
}

}  // namespace

void add_skew_command(CLI::App& bench) {
  CLI::App* skew = bench.add_subcommand(
      "skew",
      "Workers arrive one after the other: a call that waits for all, and one that waits for "
      "nobody");
  auto request = std::make_shared<Request>();
  skew->add_option("--workers", request->workers, "Processes on this machine; 0: none")
      ->capture_default_str();
  skew->add_option("--virtual-workers", request->virtual_workers,
                   "Workers in virtual time, at 10 GB/s and 5 us; 0: none")
      ->capture_default_str();
  skew->add_option("--bytes", request->bytes, "Sizes of the model, such as 1K or 4M")
      ->delimiter(',')
      ->capture_default_str();
  skew->add_option("--rounds", request->rounds, "Calls of each worker")->capture_default_str();
  skew->add_option("--spacing", request->spacing,
                   "Milliseconds between one worker's arrival and the next; 0: all on time")
      ->capture_default_str();
  skew->add_flag("--json", request->json, "Print JSON");
  skew->callback([request] { run(*request); });
}

}  // namespace starling::tool
