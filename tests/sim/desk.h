// A worker without an engine: uses its endpoint by hand and writes down everything it is told. Any
// word from inside a call of its own is a failure.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/comm/endpoint.h"
#include "starling/sim/network.h"

namespace starling::sim {

class Desk;

// How something ended.
class Slip final : public comm::Completion {
 public:
  explicit Slip(Desk& desk) : desk_(desk) {}
  void finish(comm::Finish how, std::size_t bytes) override;

  int told = 0;
  comm::Finish how = comm::Finish::Done;
  std::size_t bytes = 0;
  SimTime at{};

  bool pending() const { return told == 0; }
  bool ended(comm::Finish as) const { return told == 1 && how == as; }
  bool done() const { return ended(comm::Finish::Done); }
  double seconds() const { return starling::seconds(at.time_since_epoch()); }

 private:
  Desk& desk_;
};

class Desk final : public comm::Endpoint::Listener {
 public:
  struct Letter {
    Rank from;
    std::string text;
    SimTime at;
  };

  Desk(Network& network, Rank rank) : network_(network), endpoint_(network.endpoint(rank)) {
    endpoint_.listen(*this);
  }

  comm::Endpoint& endpoint() { return endpoint_; }
  Network& network() { return network_; }
  bool calling() const { return calling_; }

  void control(Rank to, std::string_view text) {
    call([&] { endpoint_.control(to, std::as_bytes(std::span(text))); });
  }
  Slip& send(Rank to, comm::Tag tag, comm::ConstBlob data) {
    Slip& slip = slips_.emplace_back(*this);
    call([&] { endpoint_.send(to, tag, data, slip); });
    return slip;
  }
  Slip& send(Rank to, comm::Tag tag, std::string_view text) {
    return send(to, tag, {reinterpret_cast<const std::byte*>(text.data()), text.size()});
  }
  Slip& receive(Rank from, comm::Tag tag, comm::Blob into) {
    Slip& slip = slips_.emplace_back(*this);
    call([&] { endpoint_.receive(from, tag, into, slip); });
    return slip;
  }
  Slip& receive(Rank from, comm::Tag tag, std::string& into) {
    return receive(from, tag, {reinterpret_cast<std::byte*>(into.data()), into.size()});
  }
  Slip& timer(Time when) {
    Slip& slip = slips_.emplace_back(*this);
    call([&] { endpoint_.timer(when, slip); });
    return slip;
  }
  void cancel(Slip& slip) {
    call([&] { endpoint_.cancel(slip); });
  }
  void notify() {
    call([&] { endpoint_.notify(); });
  }
  std::size_t told() const {
    std::size_t sum = 0;
    for (const Slip& slip : slips_) {
      sum += static_cast<std::size_t>(slip.told);
    }
    return sum;
  }

  void on_control(Rank from, std::span<const std::byte> message) override {
    EXPECT_FALSE(calling_) << "told of a message from inside a call";
    letters.push_back({from,
                       std::string(reinterpret_cast<const char*>(message.data()), message.size()),
                       network_.now()});
  }
  void on_lost(Rank peer) override {
    EXPECT_FALSE(calling_) << "told of a loss from inside a call";
    lost.push_back(peer);
  }
  bool needs(Rank) const override { return false; }

  std::vector<Letter> letters;
  std::vector<Rank> lost;

 private:
  template <typename Act>
  void call(Act act) {
    const bool before = std::exchange(calling_, true);
    act();
    calling_ = before;
  }

  Network& network_;
  comm::Endpoint& endpoint_;
  bool calling_ = false;
  std::deque<Slip> slips_;
};

inline void Slip::finish(comm::Finish as, std::size_t size) {
  EXPECT_FALSE(desk_.calling()) << "told of an end from inside a call";
  ++told;
  how = as;
  bytes = size;
  at = desk_.network().now();
}

// All workers of one network.
class Office {
 public:
  explicit Office(const NetworkOptions& options) : network(options) {
    for (std::uint32_t r = 0; r < network.size(); ++r) {
      desks_.emplace_back(network, Rank{r});
    }
  }
  explicit Office(std::size_t workers) : Office(NetworkOptions{.ports = {.workers = workers}}) {}

  Desk& operator[](std::size_t rank) { return desks_.at(rank); }
  void run() {
    while (network.step()) {
    }
  }

  Network network;

 private:
  std::deque<Desk> desks_;
};

inline comm::Blob weightless(std::size_t bytes) { return {nullptr, bytes}; }
inline Time time_of(double seconds) {
  return Time(std::chrono::duration_cast<Duration>(Seconds(seconds)));
}

}  // namespace starling::sim
