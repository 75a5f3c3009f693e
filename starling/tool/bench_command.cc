#include "starling/tool/bench_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/units.h"
#include "starling/tool/bench_train_command.h"
#include "starling/tool/contest.h"
#include "starling/tool/overlap_command.h"
#include "starling/tool/progress_line.h"
#include "starling/tool/skew_command.h"
#include "starling/tool/stragglers_command.h"
#include "starling/tool/suggest.h"

namespace starling::tool {
namespace {

using nlohmann::ordered_json;

struct Request {
  std::vector<std::size_t> workers = {2, 4, 8};
  std::vector<std::string> bytes = {"1Ki", "1Mi", "100M"};
  std::vector<std::string> against = {"mpi", "gloo", "memory"};
  bool is_private = false;
  int rounds = 5;
  bool json = false;
};

ContestPlan plan_of(const Request& request) {
  ContestPlan plan{.workers = request.workers,
                   .bytes = {},
                   .contestants = {"starling"},
                   .is_private = request.is_private,
                   .rounds = request.rounds};
  for (const std::size_t workers : plan.workers) {
    require(workers >= 1 && workers <= 1024, "--workers: {} is not between 1 and 1024", workers);
  }
  for (const std::string& text : request.bytes) {
    const std::size_t bytes = parse_bytes(text).value;
    require(bytes >= 4 && bytes % 4 == 0, "--bytes: '{}' is not a whole number of floats", text);
    plan.bytes.push_back(bytes);
  }
  const std::vector<std::string> known = contestants();
  for (const std::string& name : request.against) {
    require(std::find(known.begin(), known.end(), name) != known.end() && name != "starling",
            "--against: {}", unknown("rival", name, std::vector(known.begin() + 1, known.end())));
    plan.contestants.push_back(name);
  }
  require(plan.rounds >= 1, "--rounds: {} rounds", plan.rounds);
  return plan;
}

std::string milliseconds(double seconds) {
  const double ms = seconds * 1e3;
  return fmt::format("{:.{}f}", ms, ms < 1 ? 3 : ms < 10 ? 2 : 1);
}

void print_table(const ContestPlan& plan, const std::vector<ContestCase>& cases) {
  fmt::print(
      "All-reduce of floats between processes on this machine ({} cores), {} buffers;\n"
      "milliseconds until the last worker has the sum; cores kept busy meanwhile.\n\n",
      std::thread::hardware_concurrency(), plan.is_private ? "private" : "pool");
  fmt::print("{:>7} {:>9}  {:<9} {:>9} {:>9} {:>6}  {}\n", "workers", "bytes", "", "p50", "p99",
             "cores", "p50 of starling");
  for (const ContestCase& one : cases) {
    const Measured& own = one.by_contestant.at("starling");
    for (const std::string& name : plan.contestants) {
      const Measured& measured = one.by_contestant.at(name);
      const double ratio = measured.percentile(0.5) / own.percentile(0.5);
      const bool first = name == "starling";
      fmt::print("{:>7} {:>9}  {:<9} {:>9} {:>9} {:>6.2f}  {}\n",
                 first ? std::to_string(one.workers) : "", first ? to_string(Bytes{one.bytes}) : "",
                 name, milliseconds(measured.percentile(0.5)),
                 milliseconds(measured.percentile(0.99)), measured.cores(),
                 first ? "" : fmt::format("x {:.2f}", ratio));
    }
  }
}

ordered_json json_of(const ContestPlan& plan, const std::vector<ContestCase>& cases) {
  ordered_json rows = ordered_json::array();
  for (const ContestCase& one : cases) {
    ordered_json& row = rows.emplace_back();
    row["workers"] = one.workers;
    row["bytes"] = one.bytes;
    for (const std::string& name : plan.contestants) {
      const Measured& measured = one.by_contestant.at(name);
      row[name + "_seconds"] = measured.percentile(0.5);
      row[name + "_p99_seconds"] = measured.percentile(0.99);
      row[name + "_min_seconds"] = measured.percentile(0);
      row[name + "_cores"] = measured.cores();
      row[name + "_repetitions"] = measured.seconds.size();
    }
  }
  return {{"private", plan.is_private},
          {"rounds", plan.rounds},
          {"cores", std::thread::hardware_concurrency()},
          {"rows", std::move(rows)}};
}

void run(const Request& request) {
  const ContestPlan plan = plan_of(request);
  std::vector<ContestCase> cases;
  {
    ProgressLine line;
    cases = hold_contest(plan, [&](const std::string& text) { line.show(text); });
  }
  if (request.json) {
    fmt::print("{}\n", json_of(plan, cases).dump());
  } else {
    print_table(plan, cases);
  }
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure, with the rivals in the same run");
  bench->require_subcommand(1);
  CLI::App* average = bench->add_subcommand(
      "average",
      "Average a buffer between processes on this machine, against Open MPI, Gloo and "
      "what memory allows");
  auto request = std::make_shared<Request>();
  average->add_option("--workers", request->workers, "Numbers of workers")
      ->delimiter(',')
      ->capture_default_str();
  average->add_option("--bytes", request->bytes, "Sizes of the buffer, such as 1K or 100M")
      ->delimiter(',')
      ->capture_default_str();
  average->add_option("--against", request->against, "Rivals: mpi, gloo, memory (the floor)")
      ->delimiter(',')
      ->capture_default_str();
  average->add_flag("--private", request->is_private,
                    "Buffers in ordinary memory instead of the pool");
  average->add_option("--rounds", request->rounds, "How often all of them take their turn")
      ->capture_default_str();
  average->add_flag("--json", request->json, "Print JSON");
  average->callback([request] { run(*request); });
  add_skew_command(*bench);
  add_stragglers_command(*bench);
  add_bench_train_command(*bench);
  add_overlap_command(*bench);
}

}  // namespace starling::tool
