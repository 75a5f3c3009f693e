#include "starling/comm/host_endpoint.h"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "starling/base/error.h"

namespace starling::comm {
namespace {

// How often the lifelines are looked at while there is no time to sleep.
constexpr Duration kLookEvery = std::chrono::milliseconds(2);
// How long a worker that leaves waits for the others to end what it took part in.
constexpr Duration kGoodbye = std::chrono::seconds(5);

timespec as_timespec(Duration time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  return {.tv_sec = whole.count(), .tv_nsec = (time - whole).count()};
}

}  // namespace

HostEndpoint::HostEndpoint(Crew crew, std::unique_ptr<Pool> pool, std::unique_ptr<Wire> wire,
                           std::unique_ptr<Lifelines> lifelines)
    : crew_(std::move(crew)),
      pool_(std::move(pool)),
      wire_(std::move(wire)),
      lifelines_(std::move(lifelines)),
      lost_(crew_.nodes.size()),
      greeted_(crew_.nodes.size()),
      left_(crew_.nodes.size()),
      understood_(crew_.nodes.size()) {
  // Numbers of transfers must not be guessed by strangers, nor repeat those of an earlier job.
  next_number_ = pool_->address().key >> 1;
  for (std::uint32_t r = 0; r < crew_.nodes.size(); ++r) {
    if (crew_.nodes[r] == crew_.nodes[crew_.self.index()]) {
      neighbours_.push_back(Rank{r});
    }
    all_near_ = all_near_ && (Rank{r} == crew_.self || crew_.views[r].has_value());
  }
}

HostEndpoint::~HostEndpoint() { close(); }

Lifelines::Offset HostEndpoint::clock_offset(Rank peer) const {
  return peer == rank() || lifelines_ == nullptr ? Lifelines::Offset{} : lifelines_->offset(peer);
}

Time HostEndpoint::now() const {
  return Time(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

bool HostEndpoint::shares_with(Rank peer) const {
  return peer == rank() || crew_.views[peer.index()].has_value();
}

std::optional<Blob> HostEndpoint::lease(Rank owner, std::uint64_t name) {
  auto& view = crew_.views[owner.index()];
  return view && !lost_[owner.index()] ? view->lease(name) : std::nullopt;
}

void HostEndpoint::release(Rank owner, std::uint64_t name) {
  crew_.views[owner.index()]->release(name);
}

void HostEndpoint::control(Rank to, std::span<const std::byte> message) {
  check(to != rank() && message.size() <= kMaxControl, "a control message of {} bytes to worker {}",
        message.size(), to);
  if (!closed_) {
    post(to, {.letter = Letter::Control}, message);
  }
}

void HostEndpoint::post(Rank to, const Header& header, std::span<const std::byte> payload) {
  if (lost_[to.index()]) {
    return;
  }
  std::array<std::byte, kMaxPacket> packet;
  std::memcpy(packet.data(), &header, sizeof(header));
  if (!payload.empty()) {
    std::memcpy(packet.data() + sizeof(header), payload.data(), payload.size());
  }
  const auto whole = std::span(packet).first(sizeof(header) + payload.size());
  if (auto& view = crew_.views[to.index()]) {
    view->outbox().put(whole);
  } else {
    wire_->packet(to, whole);
  }
}

void HostEndpoint::on_packet(Rank from, std::span<const std::byte> packet) {
  if (lost_[from.index()] || packet.size() < sizeof(Header)) {
    return;
  }
  Header header;
  std::memcpy(&header, packet.data(), sizeof(header));
  if (closed_ && header.letter != Letter::Leaving && header.letter != Letter::Understood) {
    return;
  }
  switch (header.letter) {
    case Letter::Control:
      return on_control(from, packet.subspan(sizeof(header)));
    case Letter::Offer:
      return on_offer(from, header);
    case Letter::Take:
      return on_take(from, header);
    case Letter::Taken:
      return on_taken(from, header);
    case Letter::Withdraw:
      if (const auto offer = offers_.find({from, header.tag});
          offer != offers_.end() && offer->second.id == header.id) {
        offers_.erase(offer);
      }
      return;
    case Letter::Void:
      return on_void(from, header);
    case Letter::Greeting:
      greeted_[from.index()] = true;
      return;
    case Letter::Leaving:
      left_[from.index()] = true;
      leavers_.push_back(from);
      return;
    case Letter::Understood:
      understood_[from.index()] = true;
      return;
  }
}

void HostEndpoint::on_control(Rank from, std::span<const std::byte> message) {
  ++told_;
  listener_->on_control(from, message);
}

// --- Ends ------------------------------------------------------------------------------------

HostEndpoint::Id HostEndpoint::add(Item item) {
  const Id id = next_id_++;
  if (item.completion != nullptr) {
    item.completion->endpoint_handle = id;
  }
  items_.emplace(id, std::move(item));
  return id;
}

void HostEndpoint::end_soon(Id id, Finish how, std::size_t bytes) {
  Item& item = at(id);
  item.state = State::Ending;
  item.how = how;
  item.bytes = bytes;
  ending_.push_back(id);
}

void HostEndpoint::tell(Id id) {
  const auto known = items_.find(id);
  const Item item = std::move(known->second);
  items_.erase(known);
  ++told_;
  item.completion->finish(item.how, item.bytes);
}

void HostEndpoint::timer(Time when, Completion& completion) {
  const Id id = add({.state = State::Timer, .completion = &completion, .when = when});
  if (closed_) {
    return end_soon(id, Finish::Cancelled);
  }
  timers_.emplace(std::pair(when, id), &completion);
}

void HostEndpoint::ring_timers() {
  while (!timers_.empty() && timers_.begin()->first.first <= now()) {
    const auto [key, completion] = *timers_.begin();
    timers_.erase(timers_.begin());
    if (completion == nullptr) {
      look_after(key.second);
    } else {
      end_soon(key.second, Finish::Done);
    }
  }
}

// --- Losses ----------------------------------------------------------------------------------

void HostEndpoint::on_broken(Rank peer) { broken_.push_back(peer); }

void HostEndpoint::look_at_lifelines() {
  looked_ = now();
  lifelines_->look(looked_, [this](Rank peer) {
    // What it sent before it ended is here, or nearly: take it in first.
    read_mail();
    for (int i = 0; i < 1000 && wire_in_use() && wire_->progress(); ++i) {
    }
    lose(peer);
  });
}

void HostEndpoint::lose(Rank peer) {
  if (lost_[peer.index()]) {
    return;
  }
  lost_[peer.index()] = true;
  if (lifelines_ != nullptr) {
    lifelines_->drop(peer);
  }
  wire_->drop(peer, left_[peer.index()]);
  if (crew_.views[peer.index()]) {
    pool_->leave(crew_.seats[peer.index()]);
  }
  std::erase_if(offers_, [&](const auto& entry) { return entry.first.peer == peer; });
  std::erase_if(posted_, [&](const auto& entry) { return entry.first.peer == peer; });
  std::vector<Id> ended;
  for (auto& [id, item] : items_) {
    if (item.peer != peer) {
      continue;
    }
    if (item.state == State::Offered || item.state == State::Recalled) {
      retract(item);
      ended.push_back(id);
    } else if (item.state == State::Posted) {
      ended.push_back(id);
    }
  }
  std::sort(ended.begin(), ended.end());
  for (const Id id : ended) {
    end_soon(id, Finish::Lost);
  }
  if (!closed_ && listener_ != nullptr) {
    ++told_;
    listener_->on_lost(peer);
  }
}

// --- Waiting ---------------------------------------------------------------------------------

void HostEndpoint::read_mail() {
  pool_->inbox().take(
      [this](std::size_t seat, std::span<const std::byte> packet) {
        on_packet(neighbours_[seat], packet);
      },
      [this](std::size_t seat) { crew_.views[neighbours_[seat].index()]->outbox().ring(); });
  for (const Rank peer : neighbours_) {
    if (auto& view = crew_.views[peer.index()]; view && !lost_[peer.index()]) {
      view->outbox().flush();
    }
  }
}

void HostEndpoint::report() {
  read_mail();
  for (int i = 0; i < 64 && wire_in_use() && wire_->progress(); ++i) {
  }
  for (const Rank peer : std::exchange(broken_, {})) {
    lose(peer);
  }
  if (lifelines_ != nullptr && now() >= std::min(looked_ + kLookEvery, lifelines_->next_look())) {
    look_at_lifelines();
  }
  for (const Key& key : std::exchange(matched_, {})) {
    const auto receive = posted_.find(key);
    const auto offer = offers_.find(key);
    if (receive != posted_.end() && offer != offers_.end()) {
      take(receive->second, key.peer, offer->second);
    }
  }
  ring_timers();
  while (!ending_.empty()) {
    std::swap(ending_, telling_);
    for (const Id id : telling_) {
      tell(id);
    }
    telling_.clear();
  }
  let_go();
}

// Who leaves has done its part in whatever it began; the others may still be busy with it, and must
// not take its end for a loss.
void HostEndpoint::let_go() {
  std::erase_if(leavers_, [this](Rank peer) {
    if (!closed_ && listener_ != nullptr && listener_->needs(peer)) {
      return false;
    }
    post(peer, {.letter = Letter::Understood});
    return true;
  });
}

void HostEndpoint::wait(Time until) {
  const std::uint64_t before = told_;
  while (true) {
    report();
    const Time present = now();
    if (notified_.exchange(false) || told_ != before || closed_ || present >= until) {
      busy_until_ = present + kLinger;
      return;
    }
    if (present < busy_until_) {
      sched_yield();
    } else {
      sleep(until);
    }
  }
}

void HostEndpoint::notify() {
  notified_.store(true);
  pool_->inbox().wake();
}

void HostEndpoint::sleep(Time until) {
  if (!timers_.empty()) {
    until = std::min(until, timers_.begin()->first.first);
  }
  if (lifelines_ != nullptr) {
    until = std::min(until, lifelines_->next_look());
  }
  const Duration most = until == Time::max() ? std::chrono::hours(1) : until - now();
  if (!wire_in_use() || !wire_->files().empty()) {
    return doze(most);
  }
  // Nothing to sleep on: look again and again, first for a moment without pause, then ever longer.
  const Time began = now();
  const auto news = [this] {
    return wire_->progress() || notified_.load() || pool_->inbox().has_mail();
  };
  while (now() - began < std::chrono::microseconds(50)) {
    if (news()) {
      return;
    }
    sched_yield();
  }
  for (Duration pause = std::chrono::microseconds(20); now() < until;
       pause = std::min<Duration>(pause * 2, std::chrono::milliseconds(1))) {
    const std::uint64_t seen = told_;
    doze(std::min(pause, until - now()));
    if (told_ != seen || news()) {
      return;
    }
  }
}

// Sleeps, unless there is something to do.
void HostEndpoint::doze(Duration at_most) {
  Inbox& inbox = pool_->inbox();
  const bool armed = inbox.about_to_sleep() && !notified_.load() &&
                     (!wire_in_use() || wire_->files().empty() || wire_->arm());
  if (armed) {
    poll_files(at_most);
  }
  inbox.awake();
}

void HostEndpoint::poll_files(Duration at_most) {
  std::array<pollfd, 8> files;
  std::size_t count = 0;
  const auto watch = [&](int file) {
    files[count++] = {.fd = file, .events = POLLIN, .revents = 0};
  };
  watch(pool_->inbox().file());
  if (lifelines_ != nullptr) {
    watch(lifelines_->file());
  }
  for (const int file : wire_in_use() ? wire_->files() : std::span<const int>()) {
    watch(file);
  }
  const timespec time = as_timespec(std::max(at_most, Duration(0)));
  if (ppoll(files.data(), count, &time, nullptr) <= 0) {
    return;
  }
  if (files[0].revents != 0) {
    pool_->inbox().heard();
  }
  if (lifelines_ != nullptr && files[1].revents != 0) {
    look_at_lifelines();
  }
}

// --- The end ---------------------------------------------------------------------------------

bool HostEndpoint::all_of_them(const std::vector<bool>& said) const {
  for (std::size_t r = 0; r < size(); ++r) {
    if (r != rank().index() && !lost_[r] && !said[r]) {
      return false;
    }
  }
  return true;
}

// Sends one letter to everyone and waits until all who are not lost have answered.
void HostEndpoint::say_to_all(Letter letter, const std::vector<bool>& answered, Duration patience) {
  for (std::uint32_t r = 0; r < size(); ++r) {
    if (Rank{r} != rank()) {
      post(Rank{r}, {.letter = letter});
    }
  }
  const Time until = now() + patience;
  for (report(); !all_of_them(answered) && now() < until; report()) {
    sleep(until);
  }
}

void HostEndpoint::greet_all(Duration patience) {
  // Nobody listens yet: what else comes is kept by the others until they are greeted.
  say_to_all(Letter::Greeting, greeted_, patience);
  for (std::uint32_t r = 0; r < size(); ++r) {
    if (Rank{r} != rank() && lost_[r]) {
      throw Error(ErrorCode::Lost,
                  fmt::format("worker {} ended while the workers were connecting", r));
    }
    if (Rank{r} != rank() && !greeted_[r]) {
      throw Error(ErrorCode::Stalled,
                  fmt::format("worker {} was not heard of in time by worker {}", r, rank()));
    }
  }
}

void HostEndpoint::close() {
  if (closed_) {
    return;
  }
  closed_ = true;
  timers_.clear();
  posted_.clear();
  offers_.clear();
  for (auto& [id, item] : items_) {
    retract(item);
  }
  if (wire_ != nullptr) {
    // Others may still need what we have sent: leave only when they have heard all of it, or are
    // gone, or do not answer.
    say_to_all(Letter::Leaving, understood_, kGoodbye);
    // Ends whatever the wire still has; it says so, to on_transfer().
    wire_->close();
  }
  std::vector<Id> rest;
  for (const auto& [id, item] : items_) {
    if (item.completion != nullptr) {
      rest.push_back(id);
    }
  }
  std::sort(rest.begin(), rest.end());
  for (const Id id : rest) {
    if (at(id).state != State::Ending) {
      at(id).how = Finish::Cancelled;
    }
    tell(id);
  }
  ending_.clear();
  items_.clear();
  lifelines_.reset();
}

}  // namespace starling::comm
