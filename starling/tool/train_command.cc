#include "starling/tool/train_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/job.h"
#include "starling/launch/launch.h"
#include "starling/tool/line_printer.h"
#include "starling/tool/programs.h"
#include "starling/tool/progress_line.h"
#include "starling/tool/side_by_side.h"
#include "starling/tool/trainer.h"

namespace starling::tool {
namespace {

using launch::OnLoss;
using launch::Result;
using launch::Stream;

// Becomes the trainer.
[[noreturn]] void become(Words command) {
  std::vector<char*> words;
  for (std::string& word : command) {
    words.push_back(word.data());
  }
  words.push_back(nullptr);
  std::fflush(nullptr);
  execv(words.front(), words.data());
  throw std::system_error(errno, std::generic_category(), "cannot run " + command.front());
}

// Throws its exit code if something is wrong with the command line, or help was asked for.
TrainerPlan ask(const Words& command) {
  LinePrinter printer(false);
  const TrainerAnswer answer =
      ask_trainer(command, [&](std::size_t worker, Stream stream, std::string_view line) {
        printer.print(worker, stream, line);
      });
  if (answer.result.interrupted_by) {
    throw CLI::RuntimeError(128 + *answer.result.interrupted_by);
  }
  if (!answer.plan) {
    throw CLI::RuntimeError(answer.result.workers[0].exit_code.value_or(1));
  }
  return *answer.plan;
}

// Shows what workers write: the bar, results, and each complaint once, though all may have it.
class Screen {
 public:
  // `results`: what is written to stdout goes there instead.
  explicit Screen(std::string* results) : results_(results) {}
  void show(std::size_t worker, Stream stream, std::string_view line) {
    if (line.starts_with(kBarMark)) {
      bar_.show(std::string(line.substr(kBarMark.size())));
    } else if (stream == Stream::Out && results_ != nullptr) {
      results_->append(line).push_back('\n');
    } else if (stream == Stream::Out || complaints_.insert(shape_of(line)).second) {
      bar_.show("");
      printer_.print(worker, stream, line);
    }
  }
  void clear() { bar_.show(""); }

 private:
  // Workers' complaints differ in ranks; and a full disk strikes each in another file.
  static std::string shape_of(std::string_view line) {
    constexpr std::string_view kCannotWrite = "starling: cannot write ";
    std::string shape(line.starts_with(kCannotWrite) ? kCannotWrite : line);
    if (shape.starts_with("starling: ")) {
      std::erase_if(shape, [](char c) { return c >= '0' && c <= '9'; });
    }
    return shape;
  }

  std::string* results_;
  ProgressLine bar_;
  LinePrinter printer_{false};
  std::set<std::string> complaints_;
};

std::string names_of(const Result& result) {
  std::string text;
  for (const std::size_t worker : result.lost) {
    text += fmt::format("{}worker {} {}", text.empty() ? "" : ", ", worker,
                        launch::describe(result.workers[worker]));
  }
  return text;
}

// Says who was lost. With OnLoss::Continue the run is fine if anybody came to its end: workers end
// well only when the summary has been written.
int conclude(const Result& result, OnLoss on_loss) {
  if (result.interrupted_by) {
    fmt::print(stderr, "starling: interrupted by {}\n",
               launch::name_of_signal(*result.interrupted_by));
    return 128 + *result.interrupted_by;
  }
  if (result.lost.empty()) {
    return 0;
  }
  const launch::Outcome& first = result.workers[result.lost.front()];
  const std::size_t left = result.workers.size() - result.lost.size();
  const bool finished = on_loss == OnLoss::Continue && left > 0;
  if (finished) {
    fmt::print(stderr, "starling: {}; the other {} finished without\n", names_of(result), left);
    return 0;
  }
  if (first.signal || result.stopped > 0) {
    fmt::print(stderr, "starling: {}{}\n", names_of(result),
               result.stopped > 0 ? "; the others were ended" : "");
  }
  return first.exit_code.value_or(1);
}

// Throws its exit code if it failed. `results`: in place of stdout.
void train_here(const TrainerPlan& plan, Words command, std::string* results) {
  launch::Options options = trainer_options(plan, std::move(command), isatty(STDERR_FILENO) == 1);
  int exit_code = 0;
  {
    Screen screen(results);
    options.on_line = [&](std::size_t worker, Stream stream, std::string_view line) {
      screen.show(worker, stream, line);
    };
    const Result result = launch::launch(options);
    screen.clear();
    exit_code = conclude(result, options.on_loss);
  }
  if (exit_code != 0) {
    throw CLI::RuntimeError(exit_code);
  }
}

void train(Words arguments) {
  Words command = std::move(arguments);
  command.insert(command.begin(), find_trainer());
  if (comm::find_job(comm::process_environment()).launcher != comm::Launcher::None) {
    become(std::move(command));
  }
  if (const auto several = several_runs(command); !several.empty()) {
    std::vector<TrainerPlan> plans;  // of all, before the first is run
    for (const SeveralRuns::Run& run : several.runs) {
      plans.push_back(ask(run.command));
    }
    return train_side_by_side(several, [&](std::size_t run) {
      std::string summary;
      train_here(plans[run], several.runs[run].command, &summary);
      return nlohmann::json::parse(summary);
    });
  }
  const TrainerPlan plan = ask(command);
  train_here(plan, std::move(command), nullptr);
}

// A command whose words are all the trainer's.
void add_passed_on(CLI::App& app, const char* name, const char* help,
                   void (*run)(Words arguments)) {
  CLI::App* command = app.add_subcommand(name, help);
  command->prefix_command();
  command->set_help_flag();
  command->callback([=] { run(command->remaining()); });
}

}  // namespace

void add_train_command(CLI::App& app) {
  add_passed_on(app, "train", "Train a model, on workers that are started here", [](Words words) {
    if (words.empty() || words.front() != "images") {  // help, or what it does not know
      words.insert(words.begin(), find_trainer());
      become(std::move(words));
    }
    train(std::move(words));
  });
}

void add_data_command(CLI::App& app) {
  add_passed_on(app, "data", "Which data sets are there, and how to have the others",
                [](Words words) {
                  words.insert(words.begin(), {find_trainer(), "data"});
                  become(std::move(words));
                });
}

void add_checkpoint_command(CLI::App& app) {
  add_passed_on(app, "checkpoint", "Checkpoints of a run: list, verify, export", [](Words words) {
    words.insert(words.begin(), {find_trainer(), "checkpoint"});
    become(std::move(words));
  });
}

}  // namespace starling::tool
