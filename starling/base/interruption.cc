#include "starling/base/interruption.h"

#include <cstddef>

#include "starling/base/error.h"

namespace starling {
namespace {

// Set by a handler, which can reach nothing else.
volatile sig_atomic_t caught = 0;

void remember(int signal) { caught = signal; }

}  // namespace

Interruption::Interruption() {
  caught = 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) {
      struct sigaction action{};
      action.sa_handler = remember;
      sigaction(kSignals[i], &action, nullptr);
    }
  }
}

Interruption::~Interruption() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &before_[i], nullptr);
  }
}

void Interruption::check_point() {
  if (caught != 0) {
    throw Error(ErrorCode::Cancelled, "interrupted");
  }
}

}  // namespace starling
