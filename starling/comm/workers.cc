#include "starling/comm/workers.h"

#include <algorithm>
#include <set>
#include <utility>

#include "starling/base/error.h"

namespace starling::comm {

std::string Workers::Facts::summary() const {
  const std::set<std::string> hosts(host_names.begin(), host_names.end());
  return fmt::format("{} worker{} on {} host{}, started by {}, over {}", host_names.size(),
                     host_names.size() == 1 ? "" : "s", hosts.size(), hosts.size() == 1 ? "" : "s",
                     launcher, transport);
}

Workers::Workers(std::unique_ptr<HostEndpoint> endpoint, EngineOptions options, Facts facts)
    : endpoint_(std::move(endpoint)),
      facts_(std::move(facts)),
      options_(options),
      application_([this] { endpoint_->notify(); }) {
  for (const Rank r : everyone()) {
    offsets_.push_back(endpoint_->clock_offset(r));
  }
  thread_ = std::thread([this] { drive(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  endpoint_->notify();
  thread_.join();
}

std::vector<Rank> Workers::everyone() const {
  std::vector<Rank> all(size());
  for (std::uint32_t r = 0; r < size(); ++r) {
    all[r] = Rank{r};
  }
  return all;
}

void Workers::submit(Job job) {
  post([this, job = std::move(job)](Engine& engine) { running_.emplace_back(job(engine)); });
}

void Workers::post(std::function<void(Engine&)> work) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
  }
  endpoint_->notify();
}

void Workers::drive() {
  Engine engine(*endpoint_, arithmetic_, options_);
  bool more = false;
  while (true) {
    endpoint_->wait(more ? endpoint_->now() : Time::max());
    std::vector<std::function<void(Engine&)>> posted;
    bool ending = false;
    {
      const std::lock_guard lock(mutex_);
      std::swap(posted, posted_);
      ending = ending_;
    }
    for (const auto& work : posted) {
      work(engine);
    }
    if (ending) {
      application_.end();
    }
    for (const std::coroutine_handle<> coroutine : application_.take_ready()) {
      engine.make_ready(coroutine);
    }
    more = engine.run();
    std::erase_if(running_, [](const Running<void>& program) { return program.done(); });
    // What runs apart refers to its program: until it has run, the engine goes on.
    if (ending && !application_.busy()) {
      engine.close();
      std::erase_if(running_, [](const Running<void>& program) { return program.done(); });
      check(running_.empty(), "a program outlives its engine");
      return;
    }
  }
}

}  // namespace starling::comm
