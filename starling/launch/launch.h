// Starts the workers of a job on this machine, and stays with them until the last process of the
// job is gone.
//
// What always holds, however launch() is left, by an exception too:
//   - no process of the job is left: neither workers, nor what they started, not even if that left
//     its process group. If this process is killed by SIGKILL, the workers and their process groups
//     die as well (warden.h)
//   - signal mask, dispositions and limits of this process are as before
//   - no file and no socket is left
//
// launch() works in the calling thread alone, one job at a time in a process. While it runs, nobody
// else in the process may start processes, and no other thread may have unblocked the signals that
// it forwards.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/base/time.h"

namespace starling::launch {

inline constexpr std::size_t kMostWorkers = 4096;

enum class Stream : std::uint8_t { Out, Err };

// What becomes of the others when a worker fails, that is: exits with another code than 0, or is
// killed by a signal.
enum class OnLoss : std::uint8_t { Stop, Continue };

struct Options {
  std::size_t workers = 1;                // 1 … kMostWorkers
  std::vector<std::string> command = {};  // its first word is looked for on PATH

  // On top of what this process has. STARLING_RANK and its like cannot be set (environment.h).
  std::vector<std::pair<std::string, std::string>> environment = {};

  OnLoss on_loss = OnLoss::Stop;

  // From the signal that asks the workers to end until SIGKILL; and how long what a worker leaves
  // behind may go on writing after its end.
  Seconds grace{5};

  // Each line that a worker writes, without its newline: any bytes, in the order of writing for one
  // stream of one worker. Lines longer than kLongestLine come in pieces (lines.h). If it throws,
  // the job is killed. Nobody hears the workers if it is empty.
  std::function<void(std::size_t worker, Stream stream, std::string_view line)> on_line = {};
};

// How a worker ended: just one of exit_code and signal is there.
struct Outcome {
  pid_t pid = 0;
  std::optional<int> exit_code;
  std::optional<int> signal;
  Seconds time{0};  // from its start to its end
  bool has_failed() const { return exit_code != 0; }
};

struct Result {
  std::vector<Outcome> workers;       // by rank
  std::vector<std::size_t> lost;      // who failed unasked, the first first; with Stop at most one
  std::size_t stopped = 0;            // how many were running when a loss ended the job
  std::optional<int> interrupted_by;  // the first signal that asked this process to end
};

// "was killed by signal 9 (SIGKILL)", "ended with exit code 3"
std::string describe(const Outcome& outcome);

// "SIGTERM"; "signal 70" for one without a name.
std::string name_of_signal(int signal);

// SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are forwarded to the workers unless this process
// ignores them. The first three ask the job to end: who has not ended after the grace time is
// killed. So is everybody at a repeated SIGINT or SIGTERM, unless it comes so soon after the first
// that it is the same request, forwarded twice.
//
// Workers have an empty stdin and a process group each. A worker ends with its first process.
//
// Throws Error{Input} if the options make no sense or the command cannot be run, and
// std::system_error if the machine has not enough of something.
Result launch(const Options& options);

}  // namespace starling::launch
