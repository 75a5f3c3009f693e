#include "starling/tool/run_command.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/launch/launch.h"
#include "starling/tool/line_printer.h"
#include "starling/tool/suggest.h"

namespace starling::tool {
namespace {

using launch::OnLoss;
using launch::Outcome;
using launch::Result;
using nlohmann::ordered_json;

struct Request {
  launch::Options options;
  std::string on_loss = "stop";
  double grace = 5;
  bool no_prefix = false;
  bool json = false;
};

OnLoss parse_on_loss(const std::string& word) {
  const std::vector<std::string> words = {"stop", "continue"};
  require(word == words[0] || word == words[1], "--on-loss: {}", unknown("word", word, words));
  return word == words[0] ? OnLoss::Stop : OnLoss::Continue;
}

// As a shell has it.
int exit_code_of(const Outcome& outcome) {
  return outcome.signal ? 128 + *outcome.signal : outcome.exit_code.value_or(0);
}

int exit_code_of(const Result& result, OnLoss on_loss) {
  if (result.interrupted_by) {
    return 128 + *result.interrupted_by;
  }
  if (result.lost.empty()) {
    return 0;
  }
  return on_loss == OnLoss::Continue ? 1 : exit_code_of(result.workers[result.lost.front()]);
}

std::string count_of_workers(std::size_t count) {
  return fmt::format("{} worker{}", count, count == 1 ? "" : "s");
}

// What did not go as planned, in one line; empty if nothing.
std::string summary(const Result& result, OnLoss on_loss) {
  std::string text;
  for (const std::size_t worker : result.lost) {
    text += fmt::format("{}worker {} {}", text.empty() ? "" : ", ", worker,
                        launch::describe(result.workers[worker]));
  }
  if (on_loss == OnLoss::Continue && !text.empty()) {
    text = fmt::format("{} of {} failed: {}", result.lost.size(),
                       count_of_workers(result.workers.size()), text);
  } else if (result.stopped > 0) {
    text += fmt::format("; ended the other {}", count_of_workers(result.stopped));
  }
  if (result.interrupted_by) {
    text += fmt::format("{}interrupted by {}", text.empty() ? "" : "; ",
                        launch::name_of_signal(*result.interrupted_by));
  }
  return text;
}

ordered_json json_of(const Result& result, int exit_code) {
  ordered_json workers = ordered_json::array();
  for (std::size_t rank = 0; rank < result.workers.size(); ++rank) {
    const Outcome& outcome = result.workers[rank];
    ordered_json& worker = workers.emplace_back();
    worker["rank"] = rank;
    worker["pid"] = outcome.pid;
    worker["exit_code"] = outcome.exit_code ? ordered_json(*outcome.exit_code) : ordered_json();
    worker["signal"] = outcome.signal ? ordered_json(*outcome.signal) : ordered_json();
    worker["seconds"] = outcome.time.count();
  }
  return {{"workers", result.workers.size()},
          {"exit_code", exit_code},
          {"lost", result.lost},
          {"per_worker", std::move(workers)}};
}

// The words from the first on that is no option of ours.
std::vector<std::string> command_of(const CLI::App& app) {
  std::vector<std::string> command = app.remaining();
  if (!command.empty() && command.front().starts_with('-')) {
    throw CLI::ExtrasError({command.front()});
  }
  return command;
}

void run(const Request& request, std::vector<std::string> command) {
  launch::Options options = request.options;
  options.command = std::move(command);
  options.on_loss = parse_on_loss(request.on_loss);
  options.grace = Seconds(request.grace);
  LinePrinter printer(!request.no_prefix);
  options.on_line = [&](std::size_t worker, launch::Stream stream, std::string_view line) {
    printer.print(worker, stream, line);
  };
  const Result result = launch::launch(options);
  const int exit_code = exit_code_of(result, options.on_loss);
  const std::string text = summary(result, options.on_loss);
  if (!text.empty()) {
    fmt::print(stderr, "starling run: {}\n", text);
  }
  if (request.json) {
    fmt::print("{}\n", json_of(result, exit_code).dump());
  }
  if (exit_code != 0) {
    throw CLI::RuntimeError(exit_code);
  }
}

}  // namespace

void add_run_command(CLI::App& app) {
  // Lives as long as the callback that reads it.
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("run", "Start the workers of a job on this machine");
  command->footer(
      "starling run -n N [OPTIONS] -- COMMAND [WORDS]...\n"
      "Exit codes: 0 all workers ended well; that of the first that failed, 128 + S if signal S\n"
      "killed it; 128 + S if interrupted by signal S; 1 failed (with --on-loss continue: some\n"
      "worker did); 2 wrong command line, or the command cannot be run.");
  command->prefix_command();
  command->add_option("-n,--workers", request->options.workers, "Number of workers")->required();
  command
      ->add_option("--on-loss", request->on_loss,
                   "When a worker fails: 'stop' ends the others, 'continue' lets them go on")
      ->capture_default_str();
  command
      ->add_option("--grace", request->grace,
                   "Seconds to end in when asked to, before being killed")
      ->capture_default_str();
  command->add_flag("--no-prefix", request->no_prefix, "Do not say whose line a line is");
  command->add_flag("--json", request->json, "In the end, print how each worker ended as JSON");
  command->callback([=] { run(*request, command_of(*command)); });
}

}  // namespace starling::tool
