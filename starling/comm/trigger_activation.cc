// Activation: who has arrived starts everyone, whether they have arrived or not.
//
// It is a flood: on its first activation of version v, from whatever source, a worker passes it
// once to the workers 1, 2, 4, … places further in the view. At most N ceil(log2 N) notes per
// version, ceil(log2 N) hops, any N, and no single lost worker cuts others off. It is cumulative
// ("run every version up to v"), so that a single number is all that has to be remembered.
//
// A grace lets the first arrival wait for others; it ends early when all members of the own group
// have arrived. Learnt, it is what most lateness was in the last rounds: stragglers are not waited
// for, jitter is.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "starling/comm/trigger.h"

namespace starling::comm {
namespace {

// How many values of lateness are remembered, and which of them, in order, the grace covers.
constexpr std::size_t kRemembered = 64;
constexpr double kCovered = 0.8;

class Activator final : public Trigger {
 public:
  Activator(const TriggerOptions& options, Host& host)
      : options_(options), host_(host), draws_(Random(options.seed).stream(0x1217)) {}

  void arrived(Version v) override {
    arrived_ = v + 1;
    arrived_at_ = host_.now();
    if (v < activated_) {
      lateness_ = arrived_at_ - (activation_.at - grace());
      return host_.wake();
    }
    lateness_ = Duration(0);
    tell_arrival();
  }

  void heard(Rank from, const Note& note) override {
    switch (note.kind) {
      case Note::Kind::Activate:
        return activate(note.version, note.origin, note.hops);
      case Note::Kind::Arrive:
        return counted(from, note.version);
      default:
        return;
    }
  }

  void installed() override {
    // Whoever was asked to pass it on may be lost: say it again.
    here_.clear();
    told_ = complete_ = 0;
    if (activated_ > 0) {
      flood(activated_ - 1);
    }
    if (arrived_ > activated_) {
      tell_arrival();
    }
  }

  bool may_start(Version v, bool) override {
    if (grace_end_ && host_.now() >= *grace_end_) {
      grace_end_.reset();
      activate(arrived_ - 1, host_.rank(), 0);
    }
    if (activated_ > v && options_.when == When::OneSide && told_ <= v) {
      tell_members(v);
    }
    return activated_ > v || complete_ > v;
  }

  Activation activation(Version) const override { return activation_; }

  Duration lateness() const override { return lateness_; }
  void learnt(Duration lateness) override {
    if (options_.learn_grace) {
      recent_.push_back(lateness);
      if (recent_.size() > kRemembered) {
        recent_.erase(recent_.begin());
      }
    }
  }

 private:
  using When = TriggerOptions::When;

  Rank initiator(Version v) const {
    const topology::View& view = host_.view();
    return view.at(static_cast<std::uint32_t>(draws_.below(view.count(), v)));
  }

  Duration grace() const {
    if (!options_.learn_grace) {
      return options_.grace;
    }
    if (recent_.empty()) {
      return Duration(0);
    }
    std::vector<Duration> sorted = recent_;
    std::sort(sorted.begin(), sorted.end());
    const auto place = static_cast<std::size_t>(kCovered * static_cast<double>(sorted.size() - 1));
    return std::min(sorted[place], options_.grace);
  }

  bool waits_for_others() const { return options_.grace > Duration(0); }

  // The own arrival, in a version that nobody has started yet.
  void tell_arrival() {
    const Version v = arrived_ - 1;
    switch (options_.when) {
      case When::Initiator:
        if (initiator(v) == host_.rank()) {
          activate(v, host_.rank(), 0);
        }
        return;
      case When::Quorum:
        if (initiator(v) == host_.rank()) {
          return counted(host_.rank(), v);
        }
        return host_.send(initiator(v), {.version = v, .kind = Note::Kind::Arrive});
      default:
        break;
    }
    if (!waits_for_others()) {
      return activate(v, host_.rank(), 0);
    }
    for (const Rank r : host_.members(v)) {
      if (r != host_.rank()) {
        host_.send(r, {.version = v, .kind = Note::Kind::Arrive});
      }
    }
    grace_end_ = arrived_at_ + grace();
    host_.wake_at(*grace_end_);
    counted(host_.rank(), v);
  }

  void counted(Rank from, Version v) {
    if (v < activated_) {
      return;
    }
    std::set<Rank>& here = here_[v];
    here.insert(from);
    if (options_.when == When::Quorum) {
      const std::size_t needed = std::min<std::size_t>(options_.quorum, host_.view().count());
      if (here.size() >= needed) {
        activate(v, host_.rank(), 0);
      }
    } else if (arrived_ > v && here.size() == host_.members(v).size()) {
      // Only this group need not wait; the others hear of it when the grace is over.
      complete_ = v + 1;
      activation_ = {.by = host_.rank(), .at = host_.now(), .hops = 0};
      host_.wake();
    }
  }

  void activate(Version v, Rank by, std::uint32_t hops) {
    if (v < activated_) {
      return;
    }
    activated_ = v + 1;
    activation_ = {.by = by, .at = host_.now(), .hops = hops};
    if (arrived_ > v) {
      lateness_ = std::max(Duration(0), arrived_at_ - (activation_.at - grace()));
    }
    grace_end_.reset();
    here_.erase(here_.begin(), here_.upper_bound(v));
    flood(v);
    host_.wake();
  }

  // Who runs a version with few must see to it that they run it too.
  void tell_members(Version v) {
    told_ = v + 1;
    for (const Rank r : host_.members(v)) {
      if (r != host_.rank()) {
        host_.send(r, {.version = v,
                       .kind = Note::Kind::Activate,
                       .origin = activation_.by,
                       .hops = activation_.hops + 1});
      }
    }
  }

  void flood(Version v) {
    if (options_.when == When::OneSide) {
      return;
    }
    const Note note{.version = v,
                    .kind = Note::Kind::Activate,
                    .origin = activation_.by,
                    .hops = activation_.hops + 1};
    const topology::View& view = host_.view();
    const std::uint32_t place = view.position(host_.rank());
    for (std::uint32_t far = 1; far < view.count(); far *= 2) {
      host_.send(view.at((place + far) % view.count()), note);
    }
  }

  TriggerOptions options_;
  Host& host_;
  Random draws_;
  Version activated_ = 0;  // versions below this are to be run
  Version complete_ = 0;   // of versions below this the whole own group is here
  Version told_ = 0;       // OneSide: members of versions below this know
  Activation activation_;
  Version arrived_ = 0;  // the own application has arrived for versions below this
  Time arrived_at_{};
  std::optional<Time> grace_end_;
  std::map<Version, std::set<Rank>> here_;  // who has arrived, where it is counted
  Duration lateness_{0};
  std::vector<Duration> recent_;
};

}  // namespace

std::unique_ptr<Trigger> make_activation(const TriggerOptions& options, Trigger::Host& host) {
  return std::make_unique<Activator>(options, host);
}

}  // namespace starling::comm
