#include "starling/sim/collective.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "starling/base/error.h"
#include "starling/base/random.h"
#include "starling/comm/barrier.h"
#include "starling/comm/broadcast.h"
#include "starling/comm/neighbour_exchange.h"
#include "starling/comm/push_sum.h"

namespace starling::sim {
namespace {

using comm::AllReduce;
using topology::Neighbours;

class Simulation {
 public:
  explicit Simulation(const CollectiveOptions& options)
      : options_(options), workers_(options.network.ports.workers) {}

  CollectiveResult run() {
    require_sense();
    if (options_.verify) {
      fill();
    }
    ClusterOptions cluster_options{
        .network = options_.network,
        .engine = options_.engine,
        .payload = options_.verify ? Payload::Real : Payload::Weightless};
    Cluster cluster(cluster_options);
    nodes_ = comm::nodes_of(cluster.network().endpoint(Rank{0}), group_of(Rank{0}));
    result_.workers.resize(workers_);
    rethrow_first(
        cluster.run([&](comm::Engine& engine) { return program(engine); }, options_.progress));
    if (options_.verify) {
      verify();
    }
    result_.messages = cluster.network().messages();
    result_.events = cluster.network().events();
    result_.trace = cluster.network().trace_hash();
    for (std::uint32_t r = 0; r < workers_; ++r) {
      const Traffic& traffic = cluster.network().sent_by(Rank{r});
      result_.workers[r].bytes_sent = traffic.bulk_bytes + traffic.control_bytes;
      result_.workers[r].messages_sent = traffic.messages;
      result_.seconds = std::max(result_.seconds, result_.workers[r].finished);
    }
    price();
    return std::move(result_);
  }

 private:
  std::size_t bytes() const { return options_.bytes.value; }
  bool has_payload() const { return options_.kind != CollectiveKind::Barrier; }
  AllReduce algorithm() const {
    return options_.kind == CollectiveKind::Ring ? AllReduce::Ring : options_.algorithm;
  }

  comm::Precision precision() const {
    return reduces() ? options_.precision : comm::Precision::Full;
  }
  std::size_t shrink() const { return comm::shrink(comm::Type::Float32, precision()); }

  void require_sense() const {
    require(!has_payload() || (bytes() >= 4 && bytes() % 4 == 0),
            "--bytes is {}: a buffer of float32 needs a positive multiple of 4", bytes());
    require(options_.group_size >= 1 && options_.group_size <= workers_,
            "--group-size is {}: it must be 1 … {}, the number of workers", options_.group_size,
            workers_);
    require(options_.kind != CollectiveKind::Push || options_.peers >= 1, "--peers is 0");
    for (const Late& late : options_.late) {
      require(late.worker.index() < workers_, "--late names worker {}: workers are 0 … {}",
              late.worker, workers_ - 1);
      require(late.seconds >= 0, "--late: worker {} cannot arrive {} s early", late.worker,
              -late.seconds);
    }
  }

  std::vector<Rank> group_of(Rank rank) const {
    std::size_t begin = 0;
    std::size_t end = workers_;
    if (options_.kind == CollectiveKind::Group) {
      begin = rank.index() / options_.group_size * options_.group_size;
      end = std::min(begin + options_.group_size, workers_);
    }
    std::vector<Rank> members;
    for (std::size_t r = begin; r < end; ++r) {
      members.push_back(Rank{static_cast<std::uint32_t>(r)});
    }
    return members;
  }

  // The workers at these distances ahead, without repetition.
  Neighbours neighbours_of(Rank rank) const {
    std::vector<std::size_t> distances;
    if (options_.kind == CollectiveKind::Neighbour) {
      distances = {1, workers_ - 1};
    } else {
      for (std::size_t i = 0, d = 1; i < options_.peers && d < workers_; ++i, d *= 2) {
        distances.push_back(d);
      }
    }
    std::erase_if(distances, [&](std::size_t d) { return d % workers_ == 0; });
    std::sort(distances.begin(), distances.end());
    distances.erase(std::unique(distances.begin(), distances.end()), distances.end());
    const double share = 1.0 / static_cast<double>(distances.size() + 1);
    Neighbours row{.self_weight = share, .in = {}, .out = {}};
    for (std::size_t d : distances) {
      const auto at = [&](std::size_t r) {
        return topology::Edge{Rank{static_cast<std::uint32_t>(r % workers_)}, share};
      };
      row.out.push_back(at(rank.index() + d));
      row.in.push_back(at(rank.index() + workers_ - d));
    }
    const auto by_peer = [](const topology::Edge& a, const topology::Edge& b) {
      return a.peer < b.peer;
    };
    std::sort(row.in.begin(), row.in.end(), by_peer);
    std::sort(row.out.begin(), row.out.end(), by_peer);
    return row;
  }

  comm::ConstBuffer input(Rank r) {
    return {comm::Type::Float32,
            {options_.verify ? reinterpret_cast<const std::byte*>(in_[r.index()].data()) : nullptr,
             bytes()}};
  }
  comm::Buffer output(Rank r) {
    return {comm::Type::Float32,
            {options_.verify ? reinterpret_cast<std::byte*>(out_[r.index()].data()) : nullptr,
             bytes()}};
  }

  Task<void> program(comm::Engine& engine) {
    const Rank self = engine.rank();
    for (const Late& late : options_.late) {
      if (late.worker == self) {
        co_await engine.sleep_for(std::chrono::duration_cast<Duration>(Seconds(late.seconds)));
      }
    }
    WorkerResult& own = result_.workers[self.index()];
    own.arrived = seconds(engine.now().time_since_epoch());
    comm::Report report = co_await collective(engine);
    own.finished = seconds(engine.now().time_since_epoch());
    own.waits = std::move(report.waits);
  }

  Task<comm::Report> collective(comm::Engine& engine) {
    const Rank self = engine.rank();
    const std::vector<Rank> members = group_of(self);
    const comm::Call call{.id = 1, .members = members};
    const comm::ConstBuffer in = input(self);
    const comm::Buffer out = output(self);
    switch (options_.kind) {
      case CollectiveKind::AllReduce:
      case CollectiveKind::Ring:
      case CollectiveKind::Group:
        co_return co_await comm::all_reduce(engine, call, in, out, algorithm(), precision());
      case CollectiveKind::Broadcast:
        co_return co_await comm::broadcast(engine, call, Rank{0}, in, out);
      case CollectiveKind::Barrier:
        co_return co_await comm::barrier(engine, call);
      case CollectiveKind::Neighbour: {
        Neighbours row = neighbours_of(self);
        co_return co_await comm::neighbour_exchange(engine, 1, std::move(row), in, out);
      }
      case CollectiveKind::Push: {
        Neighbours row = neighbours_of(self);
        comm::Pushed pushed = co_await comm::push_sum(engine, 1, std::move(row), 1.0, in, out);
        co_return std::move(pushed.report);
      }
    }
    co_return comm::Report{};
  }

  void fill() {
    in_.assign(workers_, std::vector<float>(has_payload() ? bytes() / 4 : 0));
    out_ = in_;
    for (std::size_t r = 0; r < workers_; ++r) {
      const std::uint64_t start = Random(options_.network.seed).bits(r);
      for (std::size_t i = 0; i < in_[r].size(); ++i) {
        // Any numbers in [-0.5, 0.5) that differ from worker to worker will do.
        const std::uint64_t bits = (start + i) * 0x9E3779B97F4A7C15u;
        in_[r][i] = static_cast<float>(bits >> 40) * 0x1.0p-24F - 0.5F;
      }
    }
  }

  // What `rank` should hold, in double.
  std::vector<double> expected(Rank rank) const {
    std::vector<double> sum(bytes() / 4, 0.0);
    const auto add = [&](Rank from, double weight) {
      const std::vector<float> values = as_travelled(in_[from.index()]);
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += weight * values[i];
      }
    };
    if (mixes()) {
      const Neighbours row = neighbours_of(rank);
      add(rank, row.self_weight);
      for (const topology::Edge& e : row.in) {
        add(e.peer, e.weight);
      }
    } else if (options_.kind == CollectiveKind::Broadcast) {
      add(Rank{0}, 1);
    } else {
      for (Rank r : group_of(rank)) {
        add(r, 1);
      }
    }
    return sum;
  }

  // What of these counts.
  std::vector<float> as_travelled(std::vector<float> values) const {
    if (precision() == comm::Precision::Bf16) {
      const std::vector<float> given = values;
      const comm::Buffer into = comm::output(std::span(values));
      comm::KernelArithmetic().through_bf16(into.type, into.blob,
                                            comm::input(std::span(given)).blob);
    }
    return values;
  }

  bool reduces() const {
    return options_.kind == CollectiveKind::AllReduce || options_.kind == CollectiveKind::Ring ||
           options_.kind == CollectiveKind::Group;
  }
  bool mixes() const {
    return options_.kind == CollectiveKind::Neighbour || options_.kind == CollectiveKind::Push;
  }

  void verify() const {
    for (std::uint32_t r = 0; r < workers_ && has_payload(); ++r) {
      // The same bits on all members: one comparison in double per group is enough.
      const Rank first = group_of(Rank{r}).front();
      if (!mixes() && first != Rank{r}) {
        check(std::memcmp(out_[r].data(), out_[first.index()].data(), bytes()) == 0,
              "workers {} and {} hold different bits", r, first);
        continue;
      }
      const std::vector<double> right = expected(Rank{r});
      const double bound = 1e-6 * static_cast<double>(workers_);
      for (std::size_t i = 0; i < right.size(); ++i) {
        check(std::abs(out_[r][i] - right[i]) <= bound, "element {} on worker {} is {}, not {}", i,
              r, out_[r][i], right[i]);
      }
    }
  }

  void price() {
    const PortOptions& ports = options_.network.ports;
    const comm::Link link{ports.latency, ports.bandwidth};
    const double size = static_cast<double>(bytes());
    result_.closed_form_applies =
        options_.late.empty() && options_.network.jitter == 0 && ports.per_node == 1;
    switch (options_.kind) {
      case CollectiveKind::AllReduce:
      case CollectiveKind::Ring:
      case CollectiveKind::Group: {
        const std::size_t members = group_of(Rank{0}).size();
        result_.algorithm = algorithm() == AllReduce::Auto
                                ? comm::choose(members, bytes(), shrink(), nodes_)
                                : algorithm();
        result_.closed_form =
            comm::all_reduce_cost(result_.algorithm, members, size, link, shrink());
        // The last group may be smaller, and not cheaper.
        const std::size_t last = group_of(Rank{static_cast<std::uint32_t>(workers_ - 1)}).size();
        const comm::Cost other = comm::all_reduce_cost(algorithm(), last, size, link, shrink());
        result_.closed_form = {.seconds = std::max(result_.closed_form.seconds, other.seconds),
                               .bytes = std::max(result_.closed_form.bytes, other.bytes)};
        break;
      }
      case CollectiveKind::Broadcast:
        result_.closed_form =
            comm::broadcast_cost(workers_, size, options_.verify ? options_.engine.chunk : 0, link);
        break;
      case CollectiveKind::Barrier:
        result_.closed_form = comm::barrier_cost(workers_, link);
        break;
      case CollectiveKind::Neighbour:
        result_.closed_form = comm::exchange_cost(neighbours_of(Rank{0}).out.size(), size, link);
        break;
      case CollectiveKind::Push:
        result_.closed_form = comm::push_cost(neighbours_of(Rank{0}).out.size(), size, link);
        break;
    }
  }

  const CollectiveOptions& options_;
  std::size_t workers_;
  std::vector<std::vector<float>> in_;
  std::vector<std::vector<float>> out_;
  comm::Nodes nodes_ = comm::Nodes::Apart;
  CollectiveResult result_;
};

}  // namespace

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllReduce:
      return "allreduce";
    case CollectiveKind::Ring:
      return "ring";
    case CollectiveKind::Group:
      return "group";
    case CollectiveKind::Neighbour:
      return "neighbour";
    case CollectiveKind::Push:
      return "push";
    case CollectiveKind::Broadcast:
      return "broadcast";
    case CollectiveKind::Barrier:
      return "barrier";
  }
  return "unknown";
}

CollectiveResult simulate(const CollectiveOptions& options) { return Simulation(options).run(); }

}  // namespace starling::sim
