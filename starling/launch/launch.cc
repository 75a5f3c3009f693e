#include "starling/launch/launch.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstring>

#include "starling/base/error.h"
#include "starling/launch/descriptor.h"
#include "starling/launch/open_files.h"
#include "starling/launch/signals.h"
#include "starling/launch/strays.h"
#include "starling/launch/supervisor.h"
#include "starling/launch/warden.h"

namespace starling::launch {
namespace {

constexpr Seconds kLongestGrace{86400};

void validate(const Options& options) {
  require(options.workers >= 1 && options.workers <= kMostWorkers,
          "{} workers: allowed are 1 to {}", options.workers, kMostWorkers);
  require(!options.command.empty(), "which command shall the workers run?");
  require(options.grace >= Seconds{0} && options.grace <= kLongestGrace,
          "a grace time of {} s: allowed are 0 to {}", options.grace.count(),
          kLongestGrace.count());
  for (const auto& [name, value] : options.environment) {
    require(!name.empty() && name.find('=') == std::string::npos,
            "'{}' cannot be the name of an environment variable", name);
  }
}

// If one of them is closed, a pipe of a worker could get its number and be taken for it.
void open_standard_streams() {
  for (const int number : {0, 1, 2}) {
    if (fcntl(number, F_GETFD) == -1) {
      checked(open("/dev/null", O_RDWR), "cannot open /dev/null");  // takes the lowest free number
    }
  }
}

}  // namespace

std::string name_of_signal(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

std::string describe(const Outcome& outcome) {
  if (outcome.signal) {
    return fmt::format("was killed by signal {} ({})", *outcome.signal,
                       name_of_signal(*outcome.signal));
  }
  return fmt::format("ended with exit code {}", outcome.exit_code.value_or(0));
}

Result launch(const Options& options) {
  validate(options);
  open_standard_streams();
  const OpenFiles files(options.workers);
  Signals signals;
  Warden warden(options.workers);
  Strays strays;
  Supervisor supervisor(options, {.mask = signals.previous_mask(), .open_files = files.previous()},
                        signals, warden, strays);
  return supervisor.run();
}

}  // namespace starling::launch
