#include "tests/comm/view_trial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "starling/sim/network.h"

namespace starling::test {
namespace {

using comm::Version;

// Far more than any trial needs.
constexpr std::uint64_t kMostEvents = 2'000'000;

std::unique_ptr<topology::Schedule> schedule_of(const ViewPlan& plan) {
  return topology::make_schedule("groups", {.workers = plan.workers(),
                                            .per_node = 1,
                                            .group_size = plan.group,
                                            .sync_period = plan.tau});
}

class Trial {
 public:
  Trial(const ViewPlan& plan, Flaw flaw, ViewCounts& counts)
      : plan_(plan), counts_(counts), schedule_(schedule_of(plan)), network_(plan.network) {
    for (std::uint32_t r = 0; r < plan.workers(); ++r) {
      workers_.emplace_back(network_, *schedule_, plan, Rank{r}, flaw);
    }
    for (const sim::Fault& fault : plan.faults) {
      network_.plan(fault);
    }
  }

  void run() {
    for (ViewWorker& worker : workers_) {
      worker.start();
    }
    while (network_.step() && network_.events() < kMostEvents) {
    }
  }

  std::vector<std::string> judge() {
    if (network_.events() >= kMostEvents) {
      complain("it never ends");
    }
    for (const ViewWorker& worker : workers_) {
      violations_.insert(violations_.end(), worker.complaints().begin(), worker.complaints().end());
      judge_end(worker);
      judge_views(worker);
      judge_groups(worker);
    }
    for (const ViewWorker& one : workers_) {
      for (const ViewWorker& other : workers_) {
        if (one.rank() < other.rank()) {
          compare_views(one, other);
          if (trusted(one) && trusted(other)) {
            compare_rounds(one, other);
          }
        }
      }
    }
    judge_failures();
    return violations_;
  }

  std::vector<std::string> story() const {
    std::vector<std::string> lines;
    for (const ViewWorker& w : workers_) {
      lines.push_back(fmt::format("worker {}: next {}{}{} {}", w.rank(), w.next(),
                                  w.dead() ? ", dead" : "", w.left() ? ", left" : "", w.failure()));
      for (const Installed& view : w.installed()) {
        lines.push_back(fmt::format("  epoch {} from {}: {}", view.epoch, view.first, view.live));
      }
      for (std::size_t v = 0; v < w.ended().size(); ++v) {
        const Ended& ended = w.ended()[v];
        lines.push_back(fmt::format("  version {} epoch {} {}{}", v, ended.epoch,
                                    ended.is_void ? "void" : fmt::format("{}", ended.members),
                                    ended.by_install ? " by install" : ""));
      }
    }
    return lines;
  }

 private:
  template <typename... Args>
  void complain(fmt::format_string<Args...> text, Args&&... args) {
    violations_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  static bool stays(const ViewWorker& w) { return !w.dead() && !w.left() && w.failure().empty(); }
  // Whose results count: those who stay, and those who left and were surely heard.
  bool trusted(const ViewWorker& w) const {
    return stays(w) || (w.left() && !w.dead() && plan_.honest());
  }

  // (d), (e), (f)
  void judge_end(const ViewWorker& worker) {
    counts_.left += worker.left() ? 1 : 0;
    for (const Ended& ended : worker.ended()) {
      counts_.voids += ended.is_void ? 1 : 0;
      counts_.commits += ended.by_install ? 1 : 0;
    }
    if (!stays(worker)) {
      return;
    }
    ++counts_.stayed;
    if (worker.next() != plan_.versions || worker.membership().frozen()) {
      complain("worker {} hangs at version {} of {}", worker.rank(), worker.next(), plan_.versions);
    }
    std::vector<Rank> who;
    for (const ViewWorker& other : workers_) {
      if (stays(other)) {
        who.push_back(other.rank());
      }
    }
    if (!std::ranges::equal(worker.membership().view().live(), who)) {
      complain("the last view of worker {} is not {}", worker.rank(), who);
    }
    judge_time(worker);
  }

  void judge_time(const ViewWorker& worker) {
    SimTime last{};
    for (const ViewWorker& other : workers_) {
      last = std::max(last, other.disturbed());
    }
    double pause = plan_.network.detection;
    for (const sim::Fault& fault : plan_.faults) {
      pause += fault.seconds;
    }
    const double hop = plan_.network.ports.latency + plan_.network.jitter + 1e-6;
    const double each = plan_.pace + 4 * hop;
    const double bound = pause + each * static_cast<double>(plan_.versions + 20);
    if (seconds(worker.done() - last) > bound) {
      complain("worker {} ended {} s after the last disturbance", worker.rank(),
               seconds(worker.done() - last));
    }
  }

  void judge_views(const ViewWorker& worker) {
    counts_.installs += worker.installed().size();
    std::vector<Rank> before;
    for (std::uint32_t r = 0; r < plan_.workers(); ++r) {
      before.push_back({r});
    }
    for (const Installed& view : worker.installed()) {
      std::erase_if(before, [&](Rank rank) {
        return workers_[rank.index()].left() && !std::ranges::binary_search(view.live, rank);
      });
      const std::size_t reached = 2 * view.live.size();
      const bool lowest = view.live.front() == before.front();
      if (reached < before.size() || (reached == before.size() && !lowest)) {
        complain("worker {} installs {} after {}", worker.rank(), view.live, before);
      }
      before = view.live;
    }
  }

  // (b)
  void judge_groups(const ViewWorker& worker) {
    for (Version v = 0; v < worker.next(); ++v) {
      const Ended& ended = worker.ended()[v];
      if (ended.is_void) {
        continue;
      }
      const topology::View view =
          ended.epoch == 0
              ? topology::View::full(plan_.workers())
              : topology::View(plan_.workers(), worker.installed()[ended.epoch - 1].live);
      const topology::Row row =
          schedule_->row(Step{static_cast<std::int64_t>(v)}, worker.rank(), view);
      if (!std::ranges::equal(std::get<topology::Group>(row).members, ended.members)) {
        complain("worker {} ended version {} in epoch {} with {}", worker.rank(), v, ended.epoch,
                 ended.members);
      }
    }
  }

  // (a)
  void compare_views(const ViewWorker& one, const ViewWorker& other) {
    const std::size_t both = std::min(one.installed().size(), other.installed().size());
    for (std::size_t i = 0; i < both; ++i) {
      const Installed& a = one.installed()[i];
      const Installed& b = other.installed()[i];
      if (a.live == b.live && a.first == b.first) {
        continue;
      }
      const bool mutual = std::ranges::binary_search(a.live, other.rank()) &&
                          std::ranges::binary_search(b.live, one.rank());
      if (mutual || (stays(one) && stays(other))) {
        complain("workers {} and {} have in epoch {}: {} from {}, {} from {}", one.rank(),
                 other.rank(), a.epoch, a.live, a.first, b.live, b.first);
      }
      ++counts_.strayed;
    }
  }

  // (b), (c)
  void compare_rounds(const ViewWorker& one, const ViewWorker& other) {
    for (Version v = 0; v < std::min(one.next(), other.next()); ++v) {
      const Ended& a = one.ended()[v];
      const Ended& b = other.ended()[v];
      const bool together = std::ranges::binary_search(a.members, other.rank()) ||
                            std::ranges::binary_search(b.members, one.rank());
      const bool differ = a.epoch != b.epoch || a.members != b.members;
      if (plan_.is_sync(v) ? (a.is_void || b.is_void || differ)
                           : (!a.is_void && !b.is_void && together && differ)) {
        complain("version {} of workers {} and {}: epoch {} {}, epoch {} {}", v, one.rank(),
                 other.rank(), a.epoch, a.members, b.epoch, b.members);
      }
    }
  }

  // (g)
  void judge_failures() {
    std::size_t gone = 0;
    std::size_t failed = 0;
    for (const ViewWorker& worker : workers_) {
      const bool excluded = worker.failure().find("excluded") != std::string::npos;
      counts_.excluded += excluded ? 1 : 0;
      counts_.failures += !worker.failure().empty() && !excluded ? 1 : 0;
      if (excluded && plan_.honest()) {
        complain("{}, though only the dead are lost", worker.failure());
      }
      failed += worker.failure().empty() ? 0 : 1;
      gone += worker.dead() && worker.failure().empty() ? 1 : 0;
    }
    if (plan_.honest() && plan_.leavers.empty() && !plan_.all_leave && 2 * gone < plan_.workers() &&
        failed > 0) {
      complain("{} fail, though only {} of {} died", failed, gone, plan_.workers());
    }
  }

  const ViewPlan& plan_;
  ViewCounts& counts_;
  std::unique_ptr<topology::Schedule> schedule_;
  sim::Network network_;
  std::deque<ViewWorker> workers_;
  std::vector<std::string> violations_;
};

}  // namespace

ViewResult try_views(const ViewPlan& plan, Flaw flaw, ViewCounts& counts, bool tell) {
  Trial trial(plan, flaw, counts);
  trial.run();
  ViewResult result{.violations = trial.judge(), .story = {}};
  if (tell) {
    result.story = trial.story();
  }
  return result;
}

}  // namespace starling::test
