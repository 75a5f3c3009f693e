#include "starling/sim/endpoint.h"

#include <utility>

#include "starling/base/error.h"

namespace starling::sim {

void Endpoint::control(Rank to, std::span<const std::byte> message) {
  check(message.size() <= comm::kMaxControl && to != rank_ && to.index() < size(),
        "a control message of {} bytes from worker {} to {}", message.size(), rank_, to);
  if (closed_ || dead_ || lost_.contains(to)) {
    return;
  }
  Network& n = network_;
  std::uint32_t index;
  if (n.free_letters_.empty()) {
    index = static_cast<std::uint32_t>(n.letters_.size());
    n.letters_.emplace_back();
  } else {
    index = n.free_letters_.back();
    n.free_letters_.pop_back();
  }
  Network::Letter& letter = n.letters_[index];
  letter.from = rank_;
  letter.to = to;
  letter.bytes.assign(message.begin(), message.end());
  SimTime& last = last_control_[to];
  last = std::max(last, n.ports_.control(n.now_, rank_, to, message.size(), n.jitter()));
  n.queue_.push(last, static_cast<std::uint32_t>(Network::Kind::Control), index);
  traffic_.control_bytes += message.size();
  ++traffic_.messages;
  ++n.messages_;
}

void Endpoint::send(Rank to, comm::Tag tag, comm::ConstBlob data, comm::Completion& completion) {
  check(to != rank_ && to.index() < size() && data.size > 0, "a send of {} bytes from {} to {}",
        data.size, rank_, to);
  if (closed_ || lost_.contains(to)) {
    return end_soon(completion, closed_ ? comm::Finish::Cancelled : comm::Finish::Lost);
  }
  Network& n = network_;
  const std::uint32_t index = n.add_item({.completion = &completion,
                                          .data = const_cast<std::byte*>(data.data),
                                          .size = data.size,
                                          .tag = tag,
                                          .owner = rank_,
                                          .peer = to,
                                          .what = Network::What::Send,
                                          .referenced = true});
  const Ports::Offer offer = n.ports_.offer(n.now_, rank_, to, data.size, n.jitter(), index);
  if (offer.there) {
    n.schedule(*offer.there, Network::Kind::Arrive, index);
  }
  if (offer.wake) {
    n.queue_.push(*offer.wake, static_cast<std::uint32_t>(Network::Kind::PortFree), offer.port);
  }
  traffic_.bulk_bytes += data.size;
  ++traffic_.messages;
  ++n.messages_;
}

void Endpoint::receive(Rank from, comm::Tag tag, comm::Blob into, comm::Completion& completion) {
  check(from != rank_ && from.index() < size() && into.size > 0,
        "a receive of {} bytes by {} from {}", into.size, rank_, from);
  if (closed_ || lost_.contains(from)) {
    return end_soon(completion, closed_ ? comm::Finish::Cancelled : comm::Finish::Lost);
  }
  const std::uint32_t index = network_.add_item({.completion = &completion,
                                                 .data = into.data,
                                                 .size = into.size,
                                                 .tag = tag,
                                                 .owner = rank_,
                                                 .peer = from,
                                                 .what = Network::What::Receive,
                                                 .in_table = true});
  const auto [place, first] = table_.try_emplace(Key{tag, from}, index);
  if (!first) {
    // The message is there already: it arrives again, now that it can be taken.
    const std::uint32_t send = std::exchange(place->second, index);
    check(network_.items_[send].what == Network::What::Send, "two receives of {:#x} from worker {}",
          tag, from);
    network_.items_[send].in_table = false;
    network_.schedule(network_.now_, Network::Kind::Arrive, send);
  }
}

void Endpoint::timer(Time when, comm::Completion& completion) {
  if (closed_) {
    return end_soon(completion, comm::Finish::Cancelled);
  }
  const std::uint32_t index =
      network_.add_item({.completion = &completion, .owner = rank_, .what = Network::What::Timer});
  const SimTime at(std::chrono::duration_cast<SimDuration>(when.time_since_epoch()));
  network_.schedule(std::max(at, network_.now_), Network::Kind::Ring, index);
}

void Endpoint::cancel(comm::Completion& completion) {
  const auto index = static_cast<std::uint32_t>(completion.endpoint_handle);
  const Network::Item& item = network_.items_[index];
  check(item.completion == &completion && item.owner == rank_, "cancelled what is not pending");
  if (item.what == Network::What::End) {
    return;  // its end is already on the way
  }
  network_.forget(index);
  end_soon(completion, comm::Finish::Cancelled);
}

void Endpoint::end_soon(comm::Completion& completion, comm::Finish how) {
  const std::uint32_t index = network_.add_item(
      {.completion = &completion, .owner = rank_, .what = Network::What::End, .how = how});
  network_.schedule(network_.now_, Network::Kind::Ring, index);
}

void Endpoint::wait(Time until) {
  const std::uint64_t seen = reported_;
  const SimTime limit(std::chrono::duration_cast<SimDuration>(until.time_since_epoch()));
  while (reported_ == seen) {
    if (network_.queue_.empty() || network_.queue_.first().at > limit) {
      network_.now_ = std::max(network_.now_, limit);
      return;
    }
    network_.step();
  }
}

void Endpoint::notify() {
  network_.queue_.push(network_.now_, static_cast<std::uint32_t>(Network::Kind::Wake), rank_.value);
}

comm::Blob Endpoint::share(std::size_t bytes) {
  std::vector<std::byte> memory(std::max<std::size_t>(bytes, 1));
  std::byte* data = memory.data();
  shared_.emplace(data, std::move(memory));
  return {data, bytes};
}

void Endpoint::unshare(comm::Blob memory) {
  for (const auto& [name, named] : names_) {
    const bool inside =
        named.memory.data >= memory.data && named.memory.data < memory.data + memory.size;
    check(!inside || (!named.stands && named.holders.empty()),
          "worker {} gives memory back that others can still see", rank_);
  }
  check(shared_.erase(memory.data) == 1, "worker {} gives back what it never took", rank_);
}

std::optional<std::uint64_t> Endpoint::publish(comm::ConstBlob memory) {
  const auto after = shared_.upper_bound(memory.data);
  if (after == shared_.begin()) {
    return std::nullopt;
  }
  std::vector<std::byte>& home = std::prev(after)->second;
  if (memory.data + memory.size > home.data() + home.size()) {
    return std::nullopt;
  }
  std::byte* data = home.data() + (memory.data - home.data());
  names_.emplace(next_name_, Named{.memory = {data, memory.size}, .holders = {}});
  return next_name_++;
}

void Endpoint::withdraw(std::uint64_t name) {
  const auto known = names_.find(name);
  check(known != names_.end() && known->second.stands, "worker {} withdraws {}, which is no name",
        rank_, name);
  known->second.stands = false;
}

std::size_t Endpoint::leases(std::uint64_t name) const {
  const auto known = names_.find(name);
  check(known != names_.end(), "worker {} has named nothing {}", rank_, name);
  return known->second.holders.size();
}

std::optional<comm::Blob> Endpoint::lease(Rank owner, std::uint64_t name) {
  Endpoint& other = *network_.workers_.at(owner.index());
  if (!shares_with(owner) || lost_.contains(owner)) {
    return std::nullopt;
  }
  const auto known = other.names_.find(name);
  if (known == other.names_.end() || !known->second.stands) {
    return std::nullopt;
  }
  check(known->second.holders.insert(rank_).second, "worker {} holds {} of worker {} twice", rank_,
        name, owner);
  return known->second.memory;
}

void Endpoint::release(Rank owner, std::uint64_t name) {
  auto& names = network_.workers_.at(owner.index())->names_;
  const auto known = names.find(name);
  check(known != names.end() && known->second.holders.erase(rank_) == 1,
        "worker {} holds no lease of {} of worker {}", rank_, name, owner);
}

// Leases of this network are given back before anything else happens: there is nobody to take it
// from.
void Endpoint::abandon(std::uint64_t name) { names_.at(name).holders.clear(); }

void Endpoint::close() {
  closed_ = true;
  while (!pending_.empty()) {
    network_.tell(pending_.back(), comm::Finish::Cancelled, 0);
  }
}

}  // namespace starling::sim
