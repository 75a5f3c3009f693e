#include "tests/comm/fake_wire.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "starling/base/error.h"

namespace starling::comm {
namespace {

// What the wire copies; of more than that the sender keeps its buffer until it has arrived.
constexpr std::size_t kLargestLeft = 1000;

}  // namespace

// One worker's end of the net.
class FakeNet::End final : public Wire {
 public:
  End(FakeNet& net, Rank self) : net_(net), self_(self), file_{net.port(self).file} {}
  ~End() override { End::close(); }

  Bytestring address() const override { return {}; }
  void open(Rank, std::span<const Bytestring>, std::uint64_t, Listener& listener) override {
    net_.port(self_).listener = &listener;
  }
  void packet(Rank to, std::span<const std::byte> packet) override {
    check(packet.size() <= kMaxPacket && to != self_, "a packet of {} bytes to {}", packet.size(),
          to);
    const std::lock_guard lock(net_.mutex_);
    if (own().dropped[to.index()] || own().closed) {
      return;
    }
    ++net_.activity_;
    ++net_.packets_;
    own().to[to.index()].emplace_back(packet.begin(), packet.end());
    if (net_.at_once_) {
      net_.arrive(self_, to);
    }
  }
  void send(Rank to, std::uint64_t number, ConstBlob data, Token token) override {
    const std::lock_guard lock(net_.mutex_);
    ++net_.activity_;
    if (own().dropped[to.index()]) {
      return net_.tell(self_, {.kind = Event::Kind::Transfer, .token = token});
    }
    net_.sends_.push_back({self_, to, number, data, token});
  }
  void receive(Rank from, std::uint64_t number, Blob into, Token token) override {
    const std::lock_guard lock(net_.mutex_);
    ++net_.activity_;
    if (own().dropped[from.index()]) {
      return net_.tell(self_, {.kind = Event::Kind::Transfer, .token = token});
    }
    net_.receives_.push_back({self_, from, number, into, token});
  }
  void cancel_receive(Token token) override {
    const std::lock_guard lock(net_.mutex_);
    ++net_.activity_;
    const auto known = std::find_if(
        net_.receives_.begin(), net_.receives_.end(),
        [&](const Receive& receive) { return receive.at == self_ && receive.token == token; });
    if (known != net_.receives_.end() && !known->begun) {
      net_.receives_.erase(known);
      net_.tell(self_, {.kind = Event::Kind::Transfer, .token = token});
    }
  }
  void drop(Rank peer, bool) override {
    const std::lock_guard lock(net_.mutex_);
    own().dropped[peer.index()] = true;
    std::erase_if(own().arrived, [&](const Event& event) {
      return event.kind == Event::Kind::Packet && event.peer == peer;
    });
    net_.end_transfers(self_, peer);
    net_.breaks_.push_back({peer, self_});
  }
  bool progress() override {
    Event event;
    {
      const std::lock_guard lock(net_.mutex_);
      if (own().arrived.empty()) {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto got =
            own().file < 0 ? 0 : read(own().file, &count, sizeof(count));
        return false;
      }
      ++net_.activity_;
      event = std::move(own().arrived.front());
      own().arrived.pop_front();
    }
    say(event);
    return true;
  }
  std::span<const int> files() const override {
    return net_.files_ ? std::span<const int>(file_) : std::span<const int>();
  }
  bool arm() override {
    const std::lock_guard lock(net_.mutex_);
    ++own().arms;
    return own().arrived.empty();
  }
  void close() override {
    {
      const std::lock_guard lock(net_.mutex_);
      if (std::exchange(own().closed, true) || own().listener == nullptr) {
        return;
      }
      for (std::uint32_t r = 0; r < net_.ports_.size(); ++r) {
        if (Rank{r} != self_) {
          net_.end_transfers(self_, Rank{r});
          net_.breaks_.push_back({Rank{r}, self_});
        }
      }
    }
    while (progress()) {
    }
  }

 private:
  Port& own() { return net_.port(self_); }
  void say(const Event& event) {
    switch (event.kind) {
      case Event::Kind::Packet:
        return own().listener->on_packet(event.peer, event.bytes);
      case Event::Kind::Transfer:
        return own().listener->on_transfer(event.token, event.done);
      case Event::Kind::Broken:
        return own().listener->on_broken(event.peer);
    }
  }

  FakeNet& net_;
  Rank self_;
  std::array<int, 1> file_;
};

FakeNet::FakeNet(std::size_t workers, bool files) : files_(files), ports_(workers) {
  for (Port& port : ports_) {
    port.to.resize(workers);
    port.dropped.resize(workers);
    port.file = files ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
  }
}

FakeNet::~FakeNet() {
  for (const Port& port : ports_) {
    if (port.file >= 0) {
      ::close(port.file);
    }
  }
}

std::unique_ptr<Wire> FakeNet::wire(Rank self) { return std::make_unique<End>(*this, self); }

void FakeNet::tell(Rank at, Event event) {
  ++activity_;
  port(at).arrived.push_back(std::move(event));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written =
      port(at).file < 0 ? 0 : write(port(at).file, &one, sizeof(one));
}

void FakeNet::arrive(Rank from, Rank to) {
  auto& queue = port(from).to[to.index()];
  std::vector<std::byte> packet = std::move(queue.front());
  queue.pop_front();
  ++activity_;
  if (!port(to).closed && !port(to).dropped[from.index()]) {
    tell(to, {.kind = Event::Kind::Packet, .peer = from, .bytes = std::move(packet)});
  }
}

// The sender has its buffer back, perhaps long before the bytes arrive.
void FakeNet::leave(Send& send) {
  send.copy.assign(send.data.data, send.data.data + send.data.size);
  send.data = {send.copy.data(), send.copy.size()};
  send.left = true;
  tell(send.from, {.kind = Event::Kind::Transfer, .token = send.token, .done = true});
}

std::list<FakeNet::Receive>::iterator FakeNet::receive_of(const Send& send) {
  return std::find_if(receives_.begin(), receives_.end(), [&](const Receive& receive) {
    return receive.at == send.to && receive.from == send.from && receive.number == send.number;
  });
}

void FakeNet::begin(const Send& send, Receive& receive) {
  check(send.data.size == receive.into.size, "a transfer of {} bytes into {}", send.data.size,
        receive.into.size);
  ++activity_;
  receive.begun = true;
  std::memcpy(receive.into.data, send.data.data, send.data.size / 2);
}

void FakeNet::finish(std::list<Send>::iterator send, std::list<Receive>::iterator receive) {
  const std::size_t half = send->data.size / 2;
  std::memcpy(receive->into.data + half, send->data.data + half, send->data.size - half);
  tell(receive->at, {.kind = Event::Kind::Transfer, .token = receive->token, .done = true});
  if (!send->left) {
    tell(send->from, {.kind = Event::Kind::Transfer, .token = send->token, .done = true});
  }
  sends_.erase(send);
  receives_.erase(receive);
}

void FakeNet::break_now(Break broken) {
  ++activity_;
  if (!port(broken.at).closed && !port(broken.at).dropped[broken.peer.index()]) {
    tell(broken.at, {.kind = Event::Kind::Broken, .peer = broken.peer});
  }
}

// What `at` has under way with `peer` ends as not done. What had left already may still arrive.
void FakeNet::end_transfers(Rank at, Rank peer) {
  std::erase_if(receives_, [&](const Receive& receive) {
    const bool ends = receive.at == at && receive.from == peer;
    if (ends) {
      tell(at, {.kind = Event::Kind::Transfer, .token = receive.token});
    }
    return ends;
  });
  std::erase_if(sends_, [&](const Send& send) {
    const bool ends = send.from == at && send.to == peer && !send.left;
    if (ends) {
      tell(at, {.kind = Event::Kind::Transfer, .token = send.token});
    }
    return ends || (send.from == peer && send.to == at && send.left);
  });
}

bool FakeNet::step(RandomSequence& draw) {
  const std::lock_guard lock(mutex_);
  struct Choice {
    enum class Kind : std::uint8_t { Arrive, Leave, Move, Break } kind;
    std::size_t a = 0, b = 0;
    std::list<Send>::iterator send{};
  };
  std::vector<Choice> choices;
  for (std::size_t a = 0; a < ports_.size(); ++a) {
    for (std::size_t b = 0; b < ports_.size(); ++b) {
      if (!ports_[a].to[b].empty()) {
        choices.push_back({Choice::Kind::Arrive, a, b});
      }
    }
  }
  for (auto send = sends_.begin(); send != sends_.end(); ++send) {
    if (!send->left && send->data.size <= kLargestLeft) {
      choices.push_back({.kind = Choice::Kind::Leave, .send = send});
    }
    if (receive_of(*send) != receives_.end()) {
      choices.push_back({.kind = Choice::Kind::Move, .send = send});
    }
  }
  for (std::size_t i = 0; i < breaks_.size(); ++i) {
    choices.push_back({.kind = Choice::Kind::Break, .a = i});
  }
  if (choices.empty()) {
    return false;
  }
  const Choice& choice = choices[draw.below(choices.size())];
  switch (choice.kind) {
    case Choice::Kind::Arrive:
      arrive(Rank{static_cast<std::uint32_t>(choice.a)},
             Rank{static_cast<std::uint32_t>(choice.b)});
      break;
    case Choice::Kind::Leave:
      leave(*choice.send);
      break;
    case Choice::Kind::Move:
      if (const auto receive = receive_of(*choice.send); receive->begun) {
        finish(choice.send, receive);
      } else {
        begin(*choice.send, *receive);
      }
      break;
    case Choice::Kind::Break:
      break_now(breaks_[choice.a]);
      breaks_.erase(breaks_.begin() + static_cast<std::ptrdiff_t>(choice.a));
      break;
  }
  return true;
}

void FakeNet::deliver_packets(bool always) {
  const std::lock_guard lock(mutex_);
  at_once_ = at_once_ || always;
  for (std::uint32_t a = 0; a < ports_.size(); ++a) {
    for (std::uint32_t b = 0; b < ports_.size(); ++b) {
      while (!ports_[a].to[b].empty()) {
        arrive(Rank{a}, Rank{b});
      }
    }
  }
}

void FakeNet::move_transfers(bool all) {
  const std::lock_guard lock(mutex_);
  for (auto send = sends_.begin(); send != sends_.end();) {
    const auto next = std::next(send);
    if (const auto receive = receive_of(*send); receive != receives_.end()) {
      if (!receive->begun) {
        begin(*send, *receive);
      }
      if (all) {
        finish(send, receive);
      }
    }
    send = next;
  }
}

void FakeNet::sever(Rank a, Rank b) {
  const std::lock_guard lock(mutex_);
  breaks_.push_back({a, b});
  breaks_.push_back({b, a});
}

void FakeNet::sever_everything() {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t a = 0; a < ports_.size(); ++a) {
    for (std::uint32_t b = 0; b < ports_.size(); ++b) {
      if (a != b) {
        break_now({Rank{a}, Rank{b}});
      }
    }
  }
}

bool FakeNet::idle() const {
  const std::lock_guard lock(mutex_);
  return breaks_.empty() && std::all_of(ports_.begin(), ports_.end(), [](const Port& port) {
           return port.arrived.empty() && std::all_of(port.to.begin(), port.to.end(),
                                                      [](const auto& q) { return q.empty(); });
         });
}

std::uint64_t FakeNet::activity() const {
  const std::lock_guard lock(mutex_);
  return activity_;
}
std::uint64_t FakeNet::arms(Rank of) const {
  const std::lock_guard lock(mutex_);
  return ports_[of.index()].arms;
}
std::uint64_t FakeNet::packets() const {
  const std::lock_guard lock(mutex_);
  return packets_;
}

}  // namespace starling::comm
