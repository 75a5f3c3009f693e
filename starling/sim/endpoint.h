// The virtual-time twin of the real endpoints: one worker's end of a Network. wait() runs the
// network until something has happened here.
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <set>
#include <unordered_map>
#include <vector>

#include "starling/comm/endpoint.h"
#include "starling/sim/network.h"

namespace starling::sim {

class Endpoint final : public comm::Endpoint {
 public:
  Endpoint(Network& network, Rank rank) : network_(network), rank_(rank) {}

  Rank rank() const override { return rank_; }
  std::size_t size() const override { return network_.size(); }
  void listen(Listener& listener) override { listener_ = &listener; }
  void control(Rank to, std::span<const std::byte> message) override;
  void send(Rank to, comm::Tag tag, comm::ConstBlob data, comm::Completion& completion) override;
  void receive(Rank from, comm::Tag tag, comm::Blob into, comm::Completion& completion) override;
  void cancel(comm::Completion& completion) override;
  Time now() const override {
    return Time(std::chrono::floor<Duration>(network_.now().time_since_epoch()));
  }
  void timer(Time when, comm::Completion& completion) override;
  void wait(Time until) override;
  void notify() override;
  Node node_of(Rank rank) const override { return network_.ports_.node_of(rank); }
  bool shares_with(Rank peer) const override { return node_of(peer) == node_of(rank_); }
  comm::Blob share(std::size_t bytes) override;
  void unshare(comm::Blob memory) override;
  std::optional<std::uint64_t> publish(comm::ConstBlob memory) override;
  void withdraw(std::uint64_t name) override;
  std::size_t leases(std::uint64_t name) const override;
  std::optional<comm::Blob> lease(Rank owner, std::uint64_t name) override;
  void release(Rank owner, std::uint64_t name) override;
  void abandon(std::uint64_t name) override;
  void close() override;

 private:
  friend class Network;

  struct Key {
    comm::Tag tag;
    Rank from;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return (key.tag ^ (std::uint64_t{key.from.value} << 32)) * 0x9E3779B97F4A7C15u >> 7;
    }
  };
  struct Named {
    comm::Blob memory;
    bool stands = true;
    std::set<Rank> holders;
  };

  void end_soon(comm::Completion& completion, comm::Finish how);

  Network& network_;
  Rank rank_;
  Listener* listener_ = nullptr;
  comm::Engine* engine_ = nullptr;
  bool dead_ = false;
  bool stopped_ = false;
  bool closed_ = false;
  bool turn_comes_ = false;             // of a lazy engine
  std::uint64_t reported_ = 0;          // how often something has happened here
  std::vector<std::uint32_t> pending_;  // items
  std::vector<Event> backlog_;          // what happened while stopped
  std::set<Rank> lost_;
  std::pmr::unsynchronized_pool_resource pool_;
  // A receive that waits for its message, or a message that waits for its receive.
  std::pmr::unordered_map<Key, std::uint32_t, KeyHash> table_{&pool_};
  std::unordered_map<Rank, SimTime> last_control_;  // keeps control messages in order per pair
  std::map<const std::byte*, std::vector<std::byte>> shared_;
  std::map<std::uint64_t, Named> names_;
  std::uint64_t next_name_ = 1;
  Traffic traffic_;
};

}  // namespace starling::sim
