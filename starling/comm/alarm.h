// Raises a signal at a time; of several times, at the earliest and then no more.
#pragma once

#include <optional>

#include "starling/base/time.h"
#include "starling/comm/endpoint.h"
#include "starling/comm/engine.h"
#include "starling/comm/signal.h"

namespace starling::comm {

class Alarm final : private Completion {
 public:
  Alarm(Engine& engine, Signal& signal) : engine_(engine), signal_(signal) {}

  void at(Time when) {
    if (engine_.closed() || (set_ && *set_ <= when)) {
      return;
    }
    set_ = when;
    if (pending_) {
      call_back();  // finish() sets it anew
    } else {
      arm();
    }
  }
  void off() {
    set_.reset();
    call_back();
  }
  // Whether the endpoint still refers to this: it may not be destroyed.
  bool pending() const { return pending_; }

 private:
  void arm() {
    pending_ = true;
    engine_.endpoint().timer(*set_, *this);
  }
  void call_back() {
    if (pending_ && !called_back_) {
      called_back_ = true;
      engine_.endpoint().cancel(*this);
    }
  }
  void finish(Finish how, std::size_t) override {
    pending_ = called_back_ = false;
    if (how == Finish::Cancelled && set_ && !engine_.closed()) {
      return arm();
    }
    set_.reset();
    signal_.raise();
  }

  Engine& engine_;
  Signal& signal_;
  std::optional<Time> set_;
  bool pending_ = false;
  bool called_back_ = false;
};

}  // namespace starling::comm
