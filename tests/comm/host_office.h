// Real endpoints on wires in memory, and somebody at each of them who uses it by hand and writes
// down everything that is said. Any word from inside a call is a failure.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "starling/comm/host_endpoint.h"
#include "tests/comm/fake_wire.h"

namespace starling::comm {

class Desk;

// How something ended.
class Slip final : public Completion {
 public:
  explicit Slip(Desk& desk) : desk_(desk) {}
  void finish(Finish how, std::size_t bytes) override;

  int told = 0;
  Finish how = Finish::Done;
  std::size_t bytes = 0;
  std::function<void()> then;  // when it is told

  bool pending() const { return told == 0; }
  bool ended(Finish as) const { return told == 1 && how == as; }
  bool done() const { return ended(Finish::Done); }

 private:
  Desk& desk_;
};

class Desk final : public Endpoint::Listener {
 public:
  struct Letter {
    Rank from;
    std::string text;
  };

  Desk(FakeNet& net, Crew crew, std::unique_ptr<Pool> pool)
      : pool_(*pool), endpoint_(crew_and_wire(net, std::move(crew), std::move(pool))) {
    endpoint_->listen(*this);
  }

  HostEndpoint& endpoint() { return *endpoint_; }
  Pool& pool() { return pool_; }
  bool calling() const { return calling_; }

  void control(Rank to, std::string_view text) {
    call([&] { endpoint_->control(to, std::as_bytes(std::span(text))); });
  }
  Slip& send(Rank to, Tag tag, ConstBlob data) {
    Slip& slip = slips_.emplace_back(*this);
    call([&] { endpoint_->send(to, tag, data, slip); });
    return slip;
  }
  Slip& send(Rank to, Tag tag, std::string_view text) {
    return send(to, tag, {reinterpret_cast<const std::byte*>(text.data()), text.size()});
  }
  Slip& receive(Rank from, Tag tag, Blob into) {
    Slip& slip = slips_.emplace_back(*this);
    call([&] { endpoint_->receive(from, tag, into, slip); });
    return slip;
  }
  Slip& receive(Rank from, Tag tag, std::string& into) {
    return receive(from, tag, {reinterpret_cast<std::byte*>(into.data()), into.size()});
  }
  Slip& timer(Time when) {
    Slip& slip = slips_.emplace_back(*this);
    call([&] { endpoint_->timer(when, slip); });
    return slip;
  }
  Slip& timer_in(Duration time) { return timer(endpoint_->now() + time); }
  void cancel(Slip& slip) {
    call([&] { endpoint_->cancel(slip); });
  }
  // Hears what there is to hear.
  void look() { endpoint_->wait(endpoint_->now()); }
  // Waits that long, whatever happens meanwhile.
  void wait(Duration time) {
    for (const Time until = endpoint_->now() + time; endpoint_->now() < until;) {
      endpoint_->wait(until);
    }
  }

  void on_control(Rank from, std::span<const std::byte> message) override {
    EXPECT_FALSE(calling_) << "told of a message from inside a call";
    letters.push_back(
        {from, std::string(reinterpret_cast<const char*>(message.data()), message.size())});
  }
  void on_lost(Rank peer) override {
    EXPECT_FALSE(calling_) << "told of a loss from inside a call";
    lost.push_back(peer);
    if (when_lost) {
      when_lost(peer);
    }
  }
  bool needs(Rank peer) const override { return needed && needed(peer); }

  std::vector<Letter> letters;
  std::vector<Rank> lost;
  std::function<void(Rank)> when_lost;
  std::function<bool(Rank)> needed;
  std::uint64_t told = 0;

 private:
  static std::unique_ptr<HostEndpoint> crew_and_wire(FakeNet& net, Crew crew,
                                                     std::unique_ptr<Pool> pool) {
    auto wire = net.wire(crew.self);
    Wire& opened = *wire;
    const Rank self = crew.self;
    auto endpoint =
        std::make_unique<HostEndpoint>(std::move(crew), std::move(pool), std::move(wire), nullptr);
    opened.open(self, {}, 0, endpoint->wire_listener());
    return endpoint;
  }
  template <typename Act>
  void call(Act act) {
    const bool before = std::exchange(calling_, true);
    act();
    calling_ = before;
  }

  Pool& pool_;  // the endpoint's
  std::unique_ptr<HostEndpoint> endpoint_;
  bool calling_ = false;
  std::deque<Slip> slips_;
};

inline void Slip::finish(Finish as, std::size_t size) {
  EXPECT_FALSE(desk_.calling()) << "told of an end from inside a call";
  ++told;
  ++desk_.told;
  how = as;
  bytes = size;
  if (then) {
    then();
  }
}

struct OfficeOptions {
  std::vector<std::uint32_t> nodes;  // by rank
  // Whether workers of a node map each other's pools.
  bool views = true;
  std::size_t pool_bytes = 1 << 20;
  bool files = true;
  std::uint64_t seed = 0;
};

// Every worker on a host of its own: everything goes over the wire.
inline OfficeOptions apart(std::size_t workers, std::uint64_t seed = 0) {
  OfficeOptions options{.nodes = {}, .seed = seed};
  for (std::uint32_t r = 0; r < workers; ++r) {
    options.nodes.push_back(r);
  }
  return options;
}
// All on one host.
inline OfficeOptions together(std::size_t workers, std::uint64_t seed = 0) {
  return {.nodes = std::vector<std::uint32_t>(workers), .seed = seed};
}

class Office {
 public:
  explicit Office(const OfficeOptions& options)
      : net(options.nodes.size(), options.files), draw(Random(options.seed)) {
    const std::size_t workers = options.nodes.size();
    std::vector<std::unique_ptr<Pool>> pools;
    for (std::size_t r = 0; r < workers; ++r) {
      pools.push_back(std::make_unique<Pool>(options.pool_bytes));
    }
    std::vector<PoolAddress> addresses;
    for (const auto& pool : pools) {
      addresses.push_back(pool->address());
    }
    for (std::uint32_t r = 0; r < workers; ++r) {
      desks_.emplace_back(net, crew(options, addresses, Rank{r}), std::move(pools[r]));
    }
  }
  ~Office() {
    net.sever_everything();
    for (Desk& desk : desks_) {
      desk.endpoint().close();
    }
  }
  Office(const Office&) = delete;
  Office& operator=(const Office&) = delete;

  Desk& operator[](std::size_t rank) { return desks_.at(rank); }
  std::size_t size() const { return desks_.size(); }

  // Everybody hears what there is to hear.
  void look() {
    for (Desk& desk : desks_) {
      desk.look();
    }
  }
  // Packets arrive and are heard until there is nothing new; transfers stay where they are.
  void exchange_packets() {
    for (int i = 0; i < 6; ++i) {
      net.deliver_packets();
      look();
    }
  }
  // Everything happens, in an order that is drawn, until nothing moves any more.
  void run() {
    for (int quiet = 0; quiet < 3;) {
      const std::uint64_t before = moved();
      while (net.step(draw)) {
        if (draw.below(2) == 0) {
          desks_[draw.below(desks_.size())].look();
        }
      }
      look();
      quiet = moved() == before && net.idle() ? quiet + 1 : 0;
    }
  }
  // One closes while the others look on, as they would if they were processes.
  void close(std::size_t rank) {
    net.deliver_packets(/*always=*/true);
    std::atomic<bool> closed{false};
    std::jthread leaver([&] {
      desks_[rank].endpoint().close();
      closed = true;
    });
    while (!closed) {
      for (std::size_t r = 0; r < desks_.size(); ++r) {
        if (r != rank) {
          desks_[r].endpoint().wait(desks_[r].endpoint().now() + std::chrono::microseconds(100));
        }
      }
    }
  }

  FakeNet net;
  RandomSequence draw;

 private:
  // As connect() makes it: seats are counted on every node.
  static Crew crew(const OfficeOptions& options, const std::vector<PoolAddress>& pools, Rank self) {
    Crew crew{.self = self, .nodes = {}, .views = {}, .seats = {}};
    std::vector<std::size_t> taken(options.nodes.size());
    for (const std::uint32_t node : options.nodes) {
      crew.nodes.push_back(Node{node});
      crew.seats.push_back(taken[node]++);
    }
    for (std::size_t r = 0; r < options.nodes.size(); ++r) {
      auto& view = crew.views.emplace_back();
      if (options.views && r != self.index() && crew.nodes[r] == crew.nodes[self.index()]) {
        view.emplace(std::move(PoolView::open(pools[r], crew.seats[self.index()]).value()));
      }
    }
    return crew;
  }
  std::uint64_t moved() const {
    std::uint64_t sum = net.activity();
    for (const Desk& desk : desks_) {
      sum += desk.told + desk.letters.size() + desk.lost.size();
    }
    return sum;
  }

  std::deque<Desk> desks_;
};

}  // namespace starling::comm
