#include "starling/launch/supervisor.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "starling/launch/environment.h"

namespace starling::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A request to end that is repeated sooner is the same one: `timeout` and many scripts signal both
// their child and the group that it is in.
constexpr milliseconds kSameRequest{300};

WallTime after(Seconds time) {
  return steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(time);
}

bool asks_to_end(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP; }

}  // namespace

Supervisor::Supervisor(const Options& options, const Inheritance& inheritance, Signals& signals,
                       const Warden& warden, Strays& strays)
    : options_(options),
      inheritance_(inheritance),
      signals_(signals),
      warden_(warden),
      strays_(strays),
      epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "cannot wait for events")) {
  watch(signals_.descriptor(), Source::Signal, 0);
}

Result Supervisor::run() {
  start_all();
  while (left_ > 0) {
    wait();
    if (is_ending() && *kill_at_ <= steady_clock::now()) {
      kill_all();
    }
    dismiss_those_due();
  }
  for (const Worker& worker : workers_) {
    result_.workers.push_back(worker.outcome());
  }
  return result_;
}

void Supervisor::start_all() {
  const Environment job = job_environment(own_environment(), options_.environment, make_identity(),
                                          options_.workers, usable_cores());
  due_.resize(options_.workers, WallTime::max());
  for (std::size_t rank = 0; rank < options_.workers; ++rank) {
    const Worker& worker = workers_.emplace_back(
        start_process(options_.command, worker_environment(job, rank), inheritance_),
        [this, rank](Stream stream, std::string_view line) {
          if (options_.on_line) {
            options_.on_line(rank, stream, line);
          }
        });
    ++left_;
    warden_.guard(worker.process().pid);
    strays_.exempt(worker.process().pid);
    watch(worker.process().end, Source::End, rank);
    watch(worker.process().out, Source::Out, rank);
    watch(worker.process().err, Source::Err, rank);
  }
}

// --- Waiting -----------------------------------------------------------------------------------

void Supervisor::watch(const Descriptor& descriptor, Source source, std::size_t rank) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = rank << 8 | static_cast<std::uint64_t>(source);
  checked(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor.get(), &event),
          "cannot wait for a worker");
}

int Supervisor::milliseconds_to_wait() const {
  const WallTime first =
      std::min(kill_at_.value_or(WallTime::max()), *std::min_element(due_.begin(), due_.end()));
  if (first == WallTime::max()) {
    return -1;
  }
  const auto left = std::chrono::ceil<milliseconds>(first - steady_clock::now());
  return static_cast<int>(std::max<milliseconds::rep>(0, left.count()));
}

void Supervisor::wait() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.get(), events.data(), events.size(), milliseconds_to_wait());
  if (count == -1 && errno != EINTR) {
    checked(count, "cannot wait for events");
  }
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tag = events[i].data.u64;
    handle(static_cast<Source>(tag & 0xff), tag >> 8);
  }
}

void Supervisor::handle(Source source, std::size_t rank) {
  switch (source) {
    case Source::Signal:
      while (const std::optional<int> signal = signals_.next()) {
        on_signal(*signal);
      }
      return;
    case Source::End:
      on_end(rank);
      return;
    case Source::Out:
      workers_[rank].read(Stream::Out);
      return;
    case Source::Err:
      workers_[rank].read(Stream::Err);
      return;
  }
}

void Supervisor::dismiss_those_due() {
  const WallTime now = steady_clock::now();
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    Worker& worker = workers_[rank];
    const bool is_due = worker.is_silent() || is_killed_ || due_[rank] <= now;
    if (is_due && worker.has_ended() && !worker.is_gone()) {
      due_[rank] = WallTime::max();
      const pid_t pid = worker.process().pid;
      worker.dismiss();
      warden_.release(pid);
      strays_.forget(pid);
      --left_;
    }
  }
}

// --- What happens ------------------------------------------------------------------------------

void Supervisor::on_signal(int signal) {
  if (signal == SIGCHLD) {
    strays_.reap();
  } else if (signal == SIGPIPE) {
    return;  // whoever wrote was told so
  } else if (!asks_to_end(signal)) {
    tell_all(signal);
  } else if (!result_.interrupted_by) {
    result_.interrupted_by = signal;
    interrupted_at_ = steady_clock::now();
    begin_ending();
    tell_all(signal);
  } else if (signal != SIGHUP && steady_clock::now() - interrupted_at_ > kSameRequest) {
    kill_all();  // SIGHUP does not count: a terminal that is closed sends several
  }
}

void Supervisor::on_end(std::size_t rank) {
  Worker& worker = workers_[rank];
  worker.note_end();
  due_[rank] = after(options_.grace);
  if (worker.outcome().has_failed() && !is_ending()) {
    on_loss(rank);
  }
}

void Supervisor::on_loss(std::size_t rank) {
  result_.lost.push_back(rank);
  if (options_.on_loss == OnLoss::Continue) {
    return;
  }
  result_.stopped = static_cast<std::size_t>(std::count_if(
      workers_.begin(), workers_.end(), [](const Worker& worker) { return !worker.has_ended(); }));
  begin_ending();
  tell_all(SIGTERM);
}

void Supervisor::begin_ending() {
  kill_at_ = std::min(kill_at_.value_or(WallTime::max()), after(options_.grace));
}

void Supervisor::tell_all(int signal) const {
  for (const Worker& worker : workers_) {
    if (!worker.is_gone()) {
      worker.tell(signal);
    }
  }
}

void Supervisor::kill_all() {
  tell_all(SIGKILL);
  kill_at_ = WallTime::max();
  is_killed_ = true;
}

}  // namespace starling::launch
