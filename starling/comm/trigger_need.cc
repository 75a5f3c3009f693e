// Starling's own trigger. With overlap the result of version v is needed one step later, so that
// starting at the first arrival would only make contributions old. Version v starts when
//   every member is at v with nothing under way, and has handed over its update of v - A or later,
//   and  all updates that v could hold are there,
//     or the earliest member needs the result in less time than an exchange takes,
//     or a member already waits.
// Members tell each other where they are (Ready); the first to see that it is time says Go. The age
// bound A is the only place where anybody waits for a straggler.
#include <algorithm>
#include <optional>
#include <vector>

#include "starling/comm/trigger.h"

namespace starling::comm {
namespace {

// The part of the old estimate that a new measurement leaves.
constexpr double kMemory = 0.8;
// An exchange is begun this many times earlier than it is expected to take.
constexpr double kMargin = 1.5;

class Need final : public Trigger {
 public:
  Need(const TriggerOptions& options, Host& host) : options_(options), host_(host) {}

  // Here `v` counts updates: version v holds those of steps below v.
  void arrived(Version v) override {
    const Time now = host_.now();
    if (handed_at_) {
      const Duration step = now - *handed_at_;
      step_ = step_ ? blend(*step_, step) : step;
    }
    handed_ = static_cast<std::int64_t>(v);
    handed_at_ = now;
    waiting_ = false;
    tell();
    host_.wake();
  }

  void waits(Version v) override {
    if (v >= next_) {
      waiting_ = true;
      tell();
      host_.wake();
    }
  }

  void entered(Version v) override {
    const Time now = host_.now();
    if (started_ && v > next_) {
      exchange_ = exchange_ == Duration(0) ? now - *started_ : blend(exchange_, now - *started_);
    }
    started_.reset();
    next_ = v;
    if (!begun_) {
      begun_ = true;
      handed_ = std::max(handed_, static_cast<std::int64_t>(v));
    }
    idle_ = true;
    missing_.reset();
    tell();
  }

  void installed() override {
    states_.clear();
    missing_.reset();
    go_ = 0;
    idle_ = false;  // entered() follows
    started_.reset();
  }

  void heard(Rank from, const Note& note) override {
    if (note.kind == Note::Kind::Go) {
      if (note.version >= go_) {
        go_ = note.version + 1;
        by_ = {.by = from, .at = host_.now(), .hops = 1};
      }
    } else if (note.kind == Note::Kind::Ready) {
      state_of(from) = {.known = true,
                        .version = note.version,
                        .handed = note.handed,
                        .need = host_.now() + Duration(note.until_need)};
    }
    host_.wake();
  }

  bool may_start(Version v, bool) override {
    state_of(host_.rank()) = own();
    // Asked at every note: most often whoever was missing last time still is.
    if (missing_ && is_missing(*missing_, v)) {
      return false;
    }
    missing_.reset();
    bool all_fresh = true;
    Time need = Time::max();
    const auto version = static_cast<std::int64_t>(v);
    for (const Rank r : host_.members(v)) {
      if (is_missing(r, v)) {
        missing_ = r;
        return false;
      }
      const State& state = state_of(r);
      all_fresh = all_fresh && state.handed >= version;
      // Who has not handed over update v - 1 does not need v yet.
      if (state.handed >= version) {
        need = std::min(need, state.need);
      }
    }
    const Time latest = need == Time::max()
                            ? need
                            : need - std::chrono::duration_cast<Duration>(kMargin * exchange_);
    if (!all_fresh && go_ <= v && host_.now() < latest) {
      if (latest != Time::max()) {
        host_.wake_at(latest);
      }
      return false;
    }
    start(v, all_fresh);
    return true;
  }

  Activation activation(Version) const override { return by_; }

 private:
  struct State {
    bool known = false;
    Version version = 0;
    std::int64_t handed = 0;
    Time need{};
  };

  State& state_of(Rank worker) {
    if (states_.size() <= worker.index()) {
      states_.resize(host_.view().workers());
    }
    return states_[worker.index()];
  }

  // Not at `v` yet, or too old for it. Of a member of `v`.
  bool is_missing(Rank member, Version v) {
    const State& state = state_of(member);
    return !state.known || state.version < v ||
           state.handed < static_cast<std::int64_t>(v) - options_.age_bound;
  }

  static Duration blend(Duration old, Duration now) {
    return std::chrono::duration_cast<Duration>(kMemory * old + (1 - kMemory) * now);
  }

  State own() const {
    const Time need =
        waiting_ ? host_.now() : handed_at_.value_or(Time()) + step_.value_or(Duration(0));
    return {.known = true, .version = next_, .handed = handed_, .need = need};
  }

  void tell() {
    if (!idle_) {
      return;
    }
    const State state = own();
    for (const Rank r : host_.members(next_)) {
      if (r != host_.rank()) {
        host_.send(r, {.version = next_,
                       .kind = Note::Kind::Ready,
                       .handed = state.handed,
                       .until_need = (state.need - host_.now()).count()});
      }
    }
  }

  void start(Version v, bool all_fresh) {
    idle_ = false;
    started_ = host_.now();
    if (go_ > v) {
      return;
    }
    by_ = {.by = host_.rank(), .at = host_.now(), .hops = 0};
    // If all updates are there, all members of a closed group see it themselves.
    if (all_fresh && host_.is_closed(v)) {
      return;
    }
    for (const Rank r : host_.members(v)) {
      if (r != host_.rank()) {
        host_.send(r, {.version = v, .kind = Note::Kind::Go});
      }
    }
  }

  TriggerOptions options_;
  Host& host_;
  Version next_ = 0;
  bool begun_ = false;
  bool idle_ = false;        // at next_, nothing under way
  std::int64_t handed_ = 0;  // updates that the own model holds
  std::optional<Time> handed_at_;
  std::optional<Duration> step_;  // time between updates, estimated
  bool waiting_ = false;
  Duration exchange_{0};  // estimated
  std::optional<Time> started_;
  std::vector<State> states_;    // by rank
  std::optional<Rank> missing_;  // why next_ could not start when last asked
  Version go_ = 0;               // versions below this were started by somebody
  Activation by_;
};

}  // namespace

std::unique_ptr<Trigger> make_need(const TriggerOptions& options, Trigger::Host& host) {
  return std::make_unique<Need>(options, host);
}

}  // namespace starling::comm
