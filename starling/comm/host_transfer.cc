// Bulk data of a HostEndpoint: offers, what becomes of them, and their cancellation.
#include <algorithm>
#include <cstring>
#include <utility>

#include "starling/base/error.h"
#include "starling/comm/host_endpoint.h"

namespace starling::comm {
namespace {

// How long a cancelled transfer that is under way may still take. A peer that holds it up for
// longer is stopped or cut off, and is given up: the buffer has to come back.
constexpr Duration kPatience = std::chrono::seconds(5);
constexpr Duration kLookAgain = std::chrono::milliseconds(1);

}  // namespace

void HostEndpoint::send(Rank to, Tag tag, ConstBlob data, Completion& completion) {
  check(to != rank() && data.size > 0, "worker {} sends {} bytes to worker {}", rank(), data.size,
        to);
  const Id id = add(
      {.state = State::Offered, .completion = &completion, .peer = to, .tag = tag, .data = data});
  Item& item = at(id);
  if (closed_ || lost_[to.index()]) {
    return end_soon(id, closed_ ? Finish::Cancelled : Finish::Lost);
  }
  if (shares_with(to)) {
    put_in_pool(item);
  }
  post(to,
       {.letter = Letter::Offer, .tag = tag, .id = id, .number = item.name, .bytes = data.size});
}

// Names the data of a send, or a copy of it if it lies elsewhere. Where the pool has no room or no
// name left it stays without: the wire carries it.
void HostEndpoint::put_in_pool(Item& item) {
  auto name = pool_->publish(item.data);
  if (!name && !pool_->contains(item.data)) {
    const auto stage = pool_->try_share(item.data.size);
    name = stage ? pool_->publish(*stage) : std::nullopt;
    if (name) {
      item.stage = *stage;
      std::memcpy(stage->data, item.data.data, item.data.size);
    } else if (stage) {
      pool_->unshare(*stage);
    }
  }
  item.name = name.value_or(0);
}

void HostEndpoint::receive(Rank from, Tag tag, Blob into, Completion& completion) {
  check(from != rank() && into.size > 0, "worker {} receives {} bytes from worker {}", rank(),
        into.size, from);
  check(!posted_.contains({from, tag}), "two receives of {:#x} from worker {}", tag, from);
  const Id id = add(
      {.state = State::Posted, .completion = &completion, .peer = from, .tag = tag, .into = into});
  if (closed_ || lost_[from.index()]) {
    return end_soon(id, closed_ ? Finish::Cancelled : Finish::Lost);
  }
  posted_.emplace(Key{from, tag}, id);
  if (offers_.contains({from, tag})) {
    matched_.push_back({from, tag});
  }
}

// The memory that a send has named or copied is its own again. Requires: nobody holds it, or the
// memory outlives the hold.
void HostEndpoint::retract(Item& item) {
  if (item.name != 0 && item.state == State::Offered) {
    pool_->withdraw(item.name);
  }
  if (item.stage.data != nullptr) {
    pool_->unshare(std::exchange(item.stage, {}));
  }
  item.name = 0;
}

void HostEndpoint::on_offer(Rank from, const Header& header) {
  const Key key{from, header.tag};
  const Offer offer{.id = header.id, .name = header.number, .bytes = header.bytes};
  const auto receive = posted_.find(key);
  if (receive == posted_.end()) {
    offers_[key] = offer;
  } else {
    take(receive->second, from, offer);
  }
}

void HostEndpoint::take(Id receive, Rank from, const Offer& offer) {
  Item& item = at(receive);
  const Offer taken = offer;
  posted_.erase({from, item.tag});
  offers_.erase({from, item.tag});
  if (taken.bytes != item.into.size) {
    post(from, {.letter = Letter::Taken, .id = taken.id});
    return end_soon(receive, Finish::Done, taken.bytes);
  }
  if (taken.name != 0) {
    return copy_from_peer(receive, from, taken);
  }
  item.state = State::Receiving;
  item.number = next_number_++;
  by_number_[item.number] = receive;
  ++on_wire_;
  wire_->receive(from, item.number, item.into, receive);
  post(from, {.letter = Letter::Take, .id = taken.id, .number = item.number});
}

void HostEndpoint::copy_from_peer(Id receive, Rank from, const Offer& offer) {
  Item& item = at(receive);
  const auto source = lease(from, offer.name);
  if (!source) {
    // Withdrawn meanwhile: another offer may come.
    posted_.emplace(Key{from, item.tag}, receive);
    return;
  }
  std::memcpy(item.into.data, source->data, item.into.size);
  if (!crew_.views[from.index()]->release(offer.name)) {
    // The sender has given us up meanwhile, and we shall hear of it.
    posted_.emplace(Key{from, item.tag}, receive);
    return;
  }
  post(from, {.letter = Letter::Taken, .id = offer.id});
  end_soon(receive, Finish::Done, item.into.size);
}

void HostEndpoint::on_take(Rank from, const Header& header) {
  const auto known = items_.find(header.id);
  if (known == items_.end() || known->second.state != State::Offered ||
      known->second.peer != from) {
    return post(from, {.letter = Letter::Void, .number = header.number});
  }
  Item& item = known->second;
  item.state = State::Sending;
  ++on_wire_;
  wire_->send(from, header.number, item.data, header.id);
}

void HostEndpoint::on_taken(Rank from, const Header& header) {
  const auto known = items_.find(header.id);
  if (known == items_.end() || known->second.peer != from ||
      (known->second.state != State::Offered && known->second.state != State::Recalled)) {
    return;
  }
  retract(known->second);
  end_soon(header.id, Finish::Done, known->second.data.size);
}

void HostEndpoint::on_void(Rank from, const Header& header) {
  const auto number = by_number_.find(header.number);
  if (number == by_number_.end() || at(number->second).peer != from) {
    return;
  }
  at(number->second).voided = true;
  wire_->cancel_receive(number->second);
}

void HostEndpoint::on_transfer(Wire::Token token, bool done) {
  --on_wire_;
  const auto known = items_.find(token);
  if (known == items_.end()) {
    return;
  }
  Item& item = known->second;
  if (item.state == State::Sending) {
    return end_soon(token, done ? Finish::Done : closed_ ? Finish::Cancelled : Finish::Lost);
  }
  by_number_.erase(item.number);
  if (item.state == State::Sand) {
    items_.erase(known);
    return;
  }
  if (done) {
    return end_soon(token, Finish::Done, item.into.size);
  }
  if (closed_ || lost_[item.peer.index()]) {
    return end_soon(token, closed_ ? Finish::Cancelled : Finish::Lost);
  }
  if (item.voided && !item.cancelled) {
    item.voided = false;
    item.state = State::Posted;
    posted_.emplace(Key{item.peer, item.tag}, token);
    matched_.push_back({item.peer, item.tag});
    return;
  }
  if (!item.voided) {
    // The sender has been told to send: let it run into the sand.
    const std::uint64_t number = item.number;
    const Rank peer = item.peer;
    const Id sand = add({.state = State::Sand, .peer = peer, .number = number});
    std::vector<std::byte>& memory = at(sand).sand;
    memory.resize(at(token).into.size);
    by_number_[number] = sand;
    ++on_wire_;
    wire_->receive(peer, number, {memory.data(), memory.size()}, sand);
  }
  end_soon(token, Finish::Cancelled);
}

void HostEndpoint::cancel(Completion& completion) {
  const Id id = completion.endpoint_handle;
  Item& item = at(id);
  check(item.completion == &completion, "cancelled what is not pending");
  switch (item.state) {
    case State::Timer:
      timers_.erase({item.when, id});
      return end_soon(id, Finish::Cancelled);
    case State::Offered:
      post(item.peer, {.letter = Letter::Withdraw, .tag = item.tag, .id = id});
      if (item.name != 0) {
        pool_->withdraw(item.name);
        item.state = State::Recalled;
        item.when = now() + kPatience;
        return look_after(id);
      }
      return end_soon(id, Finish::Cancelled);
    case State::Posted:
      posted_.erase({item.peer, item.tag});
      return end_soon(id, Finish::Cancelled);
    case State::Receiving:
      item.cancelled = true;
      wire_->cancel_receive(id);
      timers_.emplace(std::pair(now() + kPatience, id), nullptr);
      return;
    case State::Sending:
      item.cancelled = true;
      timers_.emplace(std::pair(now() + kPatience, id), nullptr);
      return;
    case State::Recalled:
    case State::Sand:
    case State::Ending:
      return;
  }
}

// Whether a cancelled send or receive can end now.
void HostEndpoint::look_after(Id id) {
  const auto known = items_.find(id);
  if (known == items_.end()) {
    return;
  }
  Item& item = known->second;
  if (item.state == State::Recalled) {
    if (pool_->leases(item.name) != 0) {
      if (now() >= item.when) {
        return lose(item.peer);
      }
      timers_.emplace(std::pair(now() + kLookAgain, id), nullptr);
      return;
    }
    retract(item);
    end_soon(id, Finish::Cancelled);
  } else if (item.cancelled && (item.state == State::Receiving || item.state == State::Sending)) {
    lose(item.peer);
  }
}

}  // namespace starling::comm
