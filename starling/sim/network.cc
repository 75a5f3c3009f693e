#include "starling/sim/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "starling/base/error.h"
#include "starling/sim/endpoint.h"

namespace starling::sim {

Network::Network(NetworkOptions options)
    : options_(options), ports_(options.ports), random_(options.seed) {
  require(options.jitter >= 0 && options.detection >= 0,
          "jitter and detection time must not be negative");
  for (std::uint32_t r = 0; r < options.ports.workers; ++r) {
    workers_.push_back(std::make_unique<Endpoint>(*this, Rank{r}));
  }
}

Network::~Network() = default;

comm::Endpoint& Network::endpoint(Rank rank) { return *workers_.at(rank.index()); }

void Network::attach(comm::Engine& engine) {
  workers_.at(engine.rank().index())->engine_ = &engine;
}

bool Network::dead(Rank rank) const { return workers_.at(rank.index())->dead_; }

const Traffic& Network::sent_by(Rank rank) const { return workers_.at(rank.index())->traffic_; }

// --- Items -----------------------------------------------------------------------------------

std::uint32_t Network::add_item(const Item& item) {
  std::uint32_t index;
  if (free_items_.empty()) {
    index = static_cast<std::uint32_t>(items_.size());
    items_.push_back(item);
  } else {
    index = free_items_.back();
    free_items_.pop_back();
    items_[index] = item;
  }
  auto& pending = workers_[item.owner.index()]->pending_;
  items_[index].place = static_cast<std::uint32_t>(pending.size());
  pending.push_back(index);
  item.completion->endpoint_handle = index;
  return index;
}

// The owner no longer waits for it. The place is free once no event refers to it.
void Network::forget(std::uint32_t index) {
  Item& item = items_[index];
  auto& pending = workers_[item.owner.index()]->pending_;
  const std::uint32_t last = pending.back();
  pending[item.place] = last;
  items_[last].place = item.place;
  pending.pop_back();
  item.completion = nullptr;
  if (item.in_table) {
    const bool send = item.what == What::Send;
    workers_[(send ? item.peer : item.owner).index()]->table_.erase(
        {item.tag, send ? item.owner : item.peer});
    item.in_table = false;
  }
  if (!item.referenced) {
    free_items_.push_back(index);
  }
}

void Network::tell(std::uint32_t index, comm::Finish how, std::size_t bytes) {
  comm::Completion& completion = *items_[index].completion;
  forget(index);
  completion.finish(how, bytes);
}

void Network::schedule(SimTime at, Kind kind, std::uint32_t item) {
  items_[item].referenced = true;
  queue_.push(at, static_cast<std::uint32_t>(kind), item);
}

// --- Events ----------------------------------------------------------------------------------

bool Network::step() {
  while (!faults_.empty() && faults_.begin()->first <= events_) {
    const Fault fault = faults_.begin()->second;
    faults_.erase(faults_.begin());
    apply(fault);
  }
  if (queue_.empty()) {
    return false;
  }
  const Event event = queue_.pop();
  now_ = event.at;
  ++events_;
  trace(event);
  run(event);
  return true;
}

void Network::apply(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::Stop:
      stop(fault.worker);
      queue_.push(now_ + sim_duration(fault.seconds), static_cast<std::uint32_t>(Kind::Resume),
                  fault.worker.value);
      return;
    case FaultKind::Die:
      return die(fault.worker);
    case FaultKind::Cut:
      return cut(fault.worker);
  }
}

Rank Network::subject_of(const Event& event) const {
  switch (static_cast<Kind>(event.kind)) {
    case Kind::PortFree:
      break;  // nobody's
    case Kind::Arrive:
      return items_[event.subject].peer;
    case Kind::Control:
      return letters_[event.subject].to;
    case Kind::Ring:
      return items_[event.subject].owner;
    case Kind::Notice:
      return losses_[event.subject].observer;
    case Kind::Resume:
    case Kind::Wake:
      return {event.subject};
  }
  return {};
}

void Network::run(const Event& event) {
  const Kind kind = static_cast<Kind>(event.kind);
  if (kind == Kind::PortFree) {
    return port_free(event.subject);
  }
  if (kind == Kind::Resume) {
    return resume({event.subject});
  }
  const Rank subject = subject_of(event);
  Endpoint& worker = *workers_[subject.index()];
  if (worker.stopped_ && !worker.dead_) {
    worker.backlog_.push_back(event);
    return;
  }
  ++worker.reported_;
  switch (kind) {
    case Kind::PortFree:
    case Kind::Resume:
      break;
    case Kind::Wake:
      return drive(subject);
    case Kind::Arrive:
      arrive(event.subject);
      break;
    case Kind::Control:
      deliver(event.subject);
      break;
    case Kind::Ring: {
      Item& item = items_[event.subject];
      item.referenced = false;
      if (item.completion == nullptr) {
        free_items_.push_back(event.subject);
      } else if (!worker.dead_) {
        tell(event.subject, item.what == What::End ? item.how : comm::Finish::Done, item.size);
      }
      break;
    }
    case Kind::Notice:
      if (!worker.dead_) {
        notice(losses_[event.subject]);
      }
      break;
  }
  drive_soon(subject);
}

void Network::drive_soon(Rank rank) {
  if (options_.laziness == 0) {
    return drive(rank);
  }
  Endpoint& worker = *workers_[rank.index()];
  if (std::exchange(worker.turn_comes_, true)) {
    return;
  }
  const double wait = options_.laziness * random_.stream(3).uniform(events_);
  queue_.push(now_ + sim_duration(wait), static_cast<std::uint32_t>(Kind::Wake), rank.value);
}

void Network::drive(Rank rank) {
  Endpoint& worker = *workers_[rank.index()];
  worker.turn_comes_ = false;
  if (worker.engine_ != nullptr && !worker.dead_ && !worker.stopped_) {
    while (worker.engine_->run()) {
    }
  }
}

void Network::port_free(std::uint32_t port) {
  const Ports::Next next = ports_.next(now_, port);
  if (next.sent) {
    schedule(next.sent->there, Kind::Arrive, next.sent->message);
  }
  if (next.wake) {
    queue_.push(*next.wake, static_cast<std::uint32_t>(Kind::PortFree), port);
  }
}

void Network::arrive(std::uint32_t index) {
  Item& send = items_[index];
  send.referenced = false;
  if (send.completion == nullptr) {
    free_items_.push_back(index);
    return;
  }
  Endpoint& receiver = *workers_[send.peer.index()];
  if (receiver.dead_ || receiver.closed_ || workers_[send.owner.index()]->dead_ ||
      are_cut(send.owner, send.peer)) {
    return;  // lost on the way; the owner is told when it notices the loss
  }
  const auto [place, first] = receiver.table_.try_emplace({send.tag, send.owner}, index);
  if (first) {
    send.in_table = true;
    return;
  }
  const std::uint32_t receive = place->second;
  check(items_[receive].what == What::Receive, "two messages {:#x} from worker {} to {}", send.tag,
        send.owner, send.peer);
  receiver.table_.erase(place);
  items_[receive].in_table = false;
  pair(index, receive);
}

void Network::pair(std::uint32_t send_index, std::uint32_t receive_index) {
  const Item send = items_[send_index];
  const Item receive = items_[receive_index];
  if (send.data != nullptr && receive.data != nullptr) {
    std::memcpy(receive.data, send.data, std::min(send.size, receive.size));
  }
  tell(receive_index, comm::Finish::Done, send.size);
  Endpoint& sender = *workers_[send.owner.index()];
  if (sender.stopped_) {
    Item& later = items_[send_index];
    later.what = What::End;
    later.how = comm::Finish::Done;
    schedule(now_, Kind::Ring, send_index);
    return;
  }
  ++sender.reported_;
  tell(send_index, comm::Finish::Done, send.size);
  drive_soon(send.owner);
}

void Network::deliver(std::uint32_t index) {
  Letter& letter = letters_[index];
  Endpoint& worker = *workers_[letter.to.index()];
  const bool heard = !worker.dead_ && !worker.closed_ && worker.listener_ != nullptr &&
                     !worker.lost_.contains(letter.from) && !are_cut(letter.from, letter.to);
  if (heard) {
    worker.listener_->on_control(letter.from, letter.bytes);
  }
  free_letters_.push_back(index);
}

// --- Faults ----------------------------------------------------------------------------------

void Network::stop(Rank rank) { workers_.at(rank.index())->stopped_ = true; }

void Network::resume(Rank rank) {
  Endpoint& worker = *workers_.at(rank.index());
  worker.stopped_ = false;
  for (const Event& event : std::exchange(worker.backlog_, {})) {
    queue_.put_back(event, now_);
  }
}

void Network::die(Rank rank) {
  Endpoint& worker = *workers_.at(rank.index());
  if (worker.dead_) {
    return;
  }
  worker.dead_ = true;
  for (const Event& event : std::exchange(worker.backlog_, {})) {
    queue_.put_back(event, now_);
  }
  const Random draw = random_.stream(1).stream(rank.value);
  for (const auto& other : workers_) {
    report_loss(other->rank_, rank, draw);
  }
}

void Network::cut(Rank first) {
  cut_ = first;
  for (const auto& lost : workers_) {
    const Random draw = random_.stream(2).stream(lost->rank_.value);
    for (const auto& other : workers_) {
      if (are_cut(lost->rank_, other->rank_)) {
        report_loss(other->rank_, lost->rank_, draw);
      }
    }
  }
}

void Network::report_loss(Rank observer, Rank lost, const Random& draw) {
  if (workers_[observer.index()]->dead_) {
    return;
  }
  losses_.push_back({observer, lost});
  const double wait = options_.detection * (0.5 + 0.5 * draw.uniform(observer.value));
  queue_.push(now_ + sim_duration(wait), static_cast<std::uint32_t>(Kind::Notice),
              static_cast<std::uint32_t>(losses_.size() - 1));
}

void Network::notice(const LossNotice& loss) {
  Endpoint& worker = *workers_[loss.observer.index()];
  if (!worker.lost_.insert(loss.lost).second) {
    return;  // dead beyond the cut
  }
  for (auto& [name, named] : worker.names_) {
    named.holders.erase(loss.lost);
  }
  // Their ends are told by events of their own: telling one may cancel others.
  for (std::size_t i = worker.pending_.size(); i-- > 0;) {
    const std::uint32_t index = worker.pending_[i];
    const Item& item = items_[index];
    if ((item.what == What::Send || item.what == What::Receive) && item.peer == loss.lost) {
      comm::Completion& completion = *item.completion;
      forget(index);
      worker.end_soon(completion, comm::Finish::Lost);
    }
  }
  if (worker.listener_ != nullptr && !worker.closed_) {
    worker.listener_->on_lost(loss.lost);
  }
}

// --- Chance and trace ------------------------------------------------------------------------

SimDuration Network::jitter() {
  if (options_.jitter == 0) {
    return SimDuration(0);
  }
  return sim_duration(options_.jitter * random_.uniform(messages_));
}

void Network::trace(const Event& event) {
  const std::uint64_t word = static_cast<std::uint64_t>(event.at.time_since_epoch().count()) ^
                             (std::uint64_t{event.kind} << 60) ^
                             (std::uint64_t{event.subject} << 32);
  trace_hash_ = (trace_hash_ ^ word) * 0x9E3779B97F4A7C15u;
  trace_hash_ ^= trace_hash_ >> 29;
  if (lines_ != nullptr) {
    constexpr std::array<const char*, 7> kNames = {"port",  "resume", "arrive", "control",
                                                   "timer", "notice", "wake"};
    lines_->push_back(fmt::format("{} {} {} {}", event.at.time_since_epoch().count(),
                                  kNames.at(event.kind), subject_of(event), event.subject));
  }
}

}  // namespace starling::sim
