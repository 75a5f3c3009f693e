#include "starling/tool/plan_measurement.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/job.h"
#include "starling/tool/line_printer.h"
#include "starling/tool/programs.h"
#include "starling/tool/progress_line.h"
#include "starling/tool/trainer.h"

namespace starling::tool {
namespace {

using launch::Stream;

// What is being measured is a line that is written over; the rest stays.
class Screen {
 public:
  void show(std::size_t worker, Stream stream, std::string_view line) {
    if (line.starts_with("measuring ")) {
      line_.show(std::string(line));
    } else {
      line_.show("");
      printer_.print(worker, stream, line);
    }
  }

 private:
  ProgressLine line_;
  LinePrinter printer_{false};
};

int run_here(Words command) {
  Screen screen;
  const auto on_line = [&](std::size_t worker, Stream stream, std::string_view line) {
    screen.show(worker, stream, line);
  };
  const TrainerAnswer answer = ask_trainer(command, on_line);
  if (answer.result.interrupted_by) {
    return 128 + *answer.result.interrupted_by;
  }
  if (!answer.plan) {
    return answer.result.workers[0].exit_code.value_or(1);
  }
  TrainerPlan plan = *answer.plan;
  plan.on_loss = launch::OnLoss::Stop;
  launch::Options options = trainer_options(plan, std::move(command), false);
  options.on_line = on_line;
  const launch::Result result = launch::launch(options);
  if (result.interrupted_by) {
    return 128 + *result.interrupted_by;
  }
  return result.lost.empty() ? 0 : result.workers[result.lost.front()].exit_code.value_or(1);
}

// A child with the launcher's environment, as if it were this process.
int run_as_child(Words command) {
  std::vector<char*> words;
  for (std::string& word : command) {
    words.push_back(word.data());
  }
  words.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, words.front(), nullptr, nullptr, words.data(), environ);
  if (error != 0) {
    throw std::system_error(error, std::generic_category(), "cannot run " + command.front());
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "waiting for " + command.front());
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

bool reports() {
  const comm::Job job = comm::find_job(comm::process_environment());
  if (job.launcher == comm::Launcher::Pmix) {
    return comm::process_environment()("PMIX_RANK").value_or("0") == "0";
  }
  return job.launcher == comm::Launcher::None || job.rank == Rank{0};
}

void measure_profile(const Words& words, const std::filesystem::path& file) {
  Words command = words;
  command.insert(command.begin(), {find_trainer(), "images", "--measure", file.string()});
  const bool is_launched =
      comm::find_job(comm::process_environment()).launcher != comm::Launcher::None;
  const int code = is_launched ? run_as_child(std::move(command)) : run_here(std::move(command));
  if (code != 0) {
    throw CLI::RuntimeError(code);
  }
}

}  // namespace starling::tool
