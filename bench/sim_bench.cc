// How fast virtual time runs: messages per second of one core, for raw endpoints and for the
// collectives' own coroutines, weightless. Prints a table; --json for machines.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "starling/comm/all_reduce.h"
#include "starling/comm/barrier.h"
#include "starling/sim/cluster.h"

namespace starling {
namespace {

struct Result {
  std::string name;
  std::uint64_t messages = 0;
  double seconds = 0;
  double virtual_seconds = 0;
};

double elapsed(WallTime since) { return seconds(std::chrono::steady_clock::now() - since); }

std::vector<Rank> everyone(std::size_t workers) {
  std::vector<Rank> all;
  for (std::uint32_t r = 0; r < workers; ++r) {
    all.push_back(Rank{r});
  }
  return all;
}

// Every worker keeps one weightless message under way to its neighbour: no engine, no coroutine.
class Shuttle final : public comm::Completion {
 public:
  Shuttle(comm::Endpoint& endpoint, std::uint64_t& left) : endpoint_(endpoint), left_(left) {}
  void start() {
    const Rank next{static_cast<std::uint32_t>((endpoint_.rank().index() + 1) % endpoint_.size())};
    const Rank previous{static_cast<std::uint32_t>(
        (endpoint_.rank().index() + endpoint_.size() - 1) % endpoint_.size())};
    under_way_ = 2;
    endpoint_.receive(previous, turn_, {nullptr, 100'000}, *this);
    endpoint_.send(next, turn_, {nullptr, 100'000}, sent_);
    ++turn_;
  }
  void finish(comm::Finish, std::size_t) override { half(); }

 private:
  struct Sent final : comm::Completion {
    explicit Sent(Shuttle& s) : shuttle(s) {}
    Shuttle& shuttle;
    void finish(comm::Finish, std::size_t) override { shuttle.half(); }
  };
  void half() {
    if (--under_way_ == 0 && left_ > 0) {
      --left_;
      start();
    }
  }
  comm::Endpoint& endpoint_;
  std::uint64_t& left_;
  Sent sent_{*this};
  int under_way_ = 0;
  comm::Tag turn_ = 0;
};

Result raw(std::string name, std::size_t workers, std::uint64_t messages) {
  sim::NetworkOptions options;
  options.ports.workers = workers;
  sim::Network network(options);
  std::uint64_t left = messages;
  std::vector<std::unique_ptr<Shuttle>> shuttles;
  for (Rank r : everyone(workers)) {
    shuttles.push_back(std::make_unique<Shuttle>(network.endpoint(r), left));
  }
  const WallTime begin = std::chrono::steady_clock::now();
  for (auto& shuttle : shuttles) {
    shuttle->start();
  }
  while (network.step()) {
  }
  return {std::move(name), network.messages(), elapsed(begin),
          seconds(network.now().time_since_epoch())};
}

using Program = Task<void> (*)(comm::Engine&, std::vector<Rank>, std::size_t);

Result collective(std::string name, std::size_t workers, std::size_t bytes, Program program) {
  sim::ClusterOptions options;
  options.network.ports.workers = workers;
  options.payload = sim::Payload::Weightless;
  sim::Cluster cluster(options);
  const WallTime begin = std::chrono::steady_clock::now();
  sim::rethrow_first(
      cluster.run([&](comm::Engine& engine) { return program(engine, everyone(workers), bytes); }));
  return {std::move(name), cluster.network().messages(), elapsed(begin),
          seconds(cluster.network().now().time_since_epoch())};
}

template <comm::AllReduce kAlgorithm>
Task<void> reduce(comm::Engine& engine, std::vector<Rank> members, std::size_t bytes) {
  const comm::ConstBuffer in{comm::Type::Float32, {nullptr, bytes}};
  const comm::Buffer out{comm::Type::Float32, {nullptr, bytes}};
  co_await comm::all_reduce(engine, {.id = 1, .members = members}, in, out, kAlgorithm);
}

Task<void> barriers(comm::Engine& engine, std::vector<Rank> members, std::size_t count) {
  for (std::uint64_t id = 1; id <= count; ++id) {
    co_await comm::barrier(engine, {.id = id, .members = members});
  }
}

struct Case {
  std::string_view name;
  Result (*run)(std::string name);
};

constexpr Case kCases[] = {
    {"endpoints, 2 workers", [](std::string n) { return raw(std::move(n), 2, 3'000'000); }},
    {"endpoints, 1024 workers", [](std::string n) { return raw(std::move(n), 1024, 3'000'000); }},
    {"ring all-reduce, 1024 workers, 100 MB",
     [](std::string n) {
       return collective(std::move(n), 1024, 100'000'000, reduce<comm::AllReduce::Ring>);
     }},
    {"direct all-reduce, 1024 workers, 100 MB",
     [](std::string n) {
       return collective(std::move(n), 1024, 100'000'000, reduce<comm::AllReduce::Direct>);
     }},
    {"halving all-reduce, 4096 workers, 100 MB",
     [](std::string n) {
       return collective(std::move(n), 4096, 100'000'000, reduce<comm::AllReduce::Halving>);
     }},
    {"100 barriers, 1024 workers",
     [](std::string n) { return collective(std::move(n), 1024, 100, barriers); }},
};

}  // namespace
}  // namespace starling

// sim_bench [--json] [WORD]: only the cases whose name contains WORD.
int main(int argc, char** argv) {
  bool json = false;
  std::string_view word;
  for (int i = 1; i < argc; ++i) {
    (std::string_view(argv[i]) == "--json") ? void(json = true) : void(word = argv[i]);
  }
  auto rows = nlohmann::json::array();
  if (!json) {
    fmt::print("{:<42} {:>10} {:>9} {:>12} {:>14}\n", "case", "messages", "seconds", "million/s",
               "virtual time");
  }
  for (const auto& c : starling::kCases) {
    if (c.name.find(word) == std::string_view::npos) {
      continue;
    }
    const auto r = c.run(std::string(c.name));
    const double rate = static_cast<double>(r.messages) / r.seconds;
    if (json) {
      rows.push_back({{"case", r.name},
                      {"messages", r.messages},
                      {"seconds", r.seconds},
                      {"messages_per_second", rate},
                      {"virtual_seconds", r.virtual_seconds}});
    } else {
      fmt::print("{:<42} {:>10} {:>9.3f} {:>12.2f} {:>12.3f} s\n", r.name, r.messages, r.seconds,
                 rate / 1e6, r.virtual_seconds);
    }
  }
  if (json) {
    fmt::print("{}\n", rows.dump(2));
  }
}
