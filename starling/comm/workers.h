// The workers of a job, as one of them sees them: an engine on a real endpoint, and the thread that
// drives it. Programs (coroutines) are handed to that thread; the application's threads go on, or
// wait for the result.
//
// A program that computes does so apart, on the application thread, so that the engine can serve
// the other workers meanwhile.
//
// Threads: everything from any thread, except that a program itself runs on the engine's.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "starling/base/running.h"
#include "starling/base/task.h"
#include "starling/base/time.h"
#include "starling/base/units.h"
#include "starling/comm/application_thread.h"
#include "starling/comm/arithmetic.h"
#include "starling/comm/engine.h"
#include "starling/comm/host_endpoint.h"
#include "starling/comm/linger.h"

namespace starling::comm {

// Memory from the worker's pool: collectives work in it without copying. Given back when it ends;
// must not outlive its Workers.
class PoolMemory {
 public:
  PoolMemory() = default;
  PoolMemory(HostEndpoint& endpoint, std::size_t bytes)
      : endpoint_(&endpoint), blob_(endpoint.share(bytes)) {}
  PoolMemory(PoolMemory&& other) noexcept
      : endpoint_(std::exchange(other.endpoint_, nullptr)), blob_(other.blob_) {}
  PoolMemory& operator=(PoolMemory&& other) noexcept {
    std::swap(endpoint_, other.endpoint_);
    std::swap(blob_, other.blob_);
    return *this;
  }
  ~PoolMemory() {
    if (endpoint_ != nullptr) {
      endpoint_->unshare(blob_);
    }
  }
  Blob blob() const { return blob_; }
  template <typename T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(blob_.data), blob_.size / sizeof(T)};
  }

 private:
  HostEndpoint* endpoint_ = nullptr;
  Blob blob_;
};

class Workers {
 public:
  // How they came together, for the user.
  struct Facts {
    std::string launcher;                 // "starling run", "PMIx (mpirun)", …
    std::string transport;                // "ucx", "mpi", "none"
    std::vector<std::string> host_names;  // by rank
    std::string summary() const;
  };

  Workers(std::unique_ptr<HostEndpoint> endpoint, EngineOptions options, Facts facts);
  // Ends what still runs, with Error{Cancelled}, and leaves. Waits for what runs apart.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  Rank rank() const { return endpoint_->rank(); }
  std::size_t size() const { return endpoint_->size(); }
  std::vector<Rank> everyone() const;
  Node node_of(Rank worker) const { return endpoint_->node_of(worker); }
  bool shares_memory_with(Rank worker) const { return endpoint_->shares_with(worker); }
  const Facts& facts() const { return facts_; }
  // How much the clock of `worker` was ahead of ours when they met, and how far off that may be.
  Lifelines::Offset clock_offset(Rank worker) const { return offsets_.at(worker.index()); }

  PoolMemory memory(std::size_t bytes) { return {*endpoint_, bytes}; }

  // A series for what lives on the engine for a while (Engine::invite), each used once. All workers
  // ask in the same order.
  std::uint64_t next_series() { return series_++; }

  // Starts `program` on the engine's thread. It is destroyed there, when it has ended.
  template <typename Program>
  auto start(Program program) {
    using T = typename std::invoke_result_t<Program, Engine&>::Value;
    auto promise = std::make_unique<std::promise<T>>();
    auto result = promise->get_future();
    // A std::function is copied: hence a shared_ptr, whose copies all live in one place.
    auto held = std::make_shared<Program>(std::move(program));
    std::shared_ptr<std::promise<T>> kept = std::move(promise);
    submit([held, kept](Engine& engine) { return finish<T>(engine, held, kept); });
    return result;
  }
  // The same, and waits for the end: its value, or its exception.
  template <typename Program>
  auto run(Program program) {
    auto result = start(std::move(program));
    linger([&] { return result.wait_for(Seconds(0)) == std::future_status::ready; });
    return result.get();
  }

  // Runs `work` on the engine's thread, soon. What one thread starts and posts is begun in that
  // order. It may not throw.
  void post(std::function<void(Engine&)> work);

  // From a program: runs `work` on the application thread, and goes on, on the engine's, when it
  // has run. Throws what it throws. One at a time; others wait for their turn.
  Task<void> apart(std::function<void()> work) { return application_.run(std::move(work)); }

 private:
  using Job = std::function<Task<void>(Engine&)>;

  template <typename T, typename Program>
  static Task<void> finish(Engine& engine, std::shared_ptr<Program> program,
                           std::shared_ptr<std::promise<T>> promise) {
    try {
      if constexpr (std::is_void_v<T>) {
        co_await (*program)(engine);
        promise->set_value();
      } else {
        promise->set_value(co_await (*program)(engine));
      }
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  }

  void submit(Job job);
  void drive();

  std::unique_ptr<HostEndpoint> endpoint_;
  KernelArithmetic arithmetic_;
  Facts facts_;
  std::vector<Lifelines::Offset> offsets_;
  EngineOptions options_;
  std::atomic<std::uint64_t> series_{0};
  std::mutex mutex_;  // guards posted_ and ending_
  std::vector<std::function<void(Engine&)>> posted_;
  bool ending_ = false;
  std::vector<Running<void>> running_;  // the engine's thread alone
  ApplicationThread application_;
  std::thread thread_;
};

}  // namespace starling::comm
