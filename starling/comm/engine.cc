#include "starling/comm/engine.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "starling/base/error.h"
#include "starling/comm/operation.h"

namespace starling::comm {
namespace {

// How many failures of operations that this worker never starts are remembered.
constexpr std::size_t kMostRefused = 1024;

std::exception_ptr closed_error(Rank rank) {
  return std::make_exception_ptr(
      Error(ErrorCode::Cancelled, fmt::format("the engine of worker {} was closed", rank)));
}

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::Barrier:
      return "barrier";
    case Kind::Broadcast:
      return "broadcast";
    case Kind::AllReduce:
      return "all-reduce";
    case Kind::NeighbourExchange:
      return "neighbour exchange";
    case Kind::PushSum:
      return "push-sum exchange";
    case Kind::Gather:
      return "gather";
  }
  return "operation";
}

// One timer for all operations of the engine: it sleeps until the first of them could have stalled.
class Engine::StallTimer final : public Completion {
 public:
  explicit StallTimer(Engine& engine) : engine_(engine) {}

  void arm() {
    if (!armed_ && !engine_.closed_ && !engine_.operations_.empty()) {
      armed_ = true;
      engine_.endpoint_.timer(next_.value_or(engine_.now() + engine_.options_.max_stall), *this);
    }
  }
  void finish(Finish, std::size_t) override {
    armed_ = false;
    next_.reset();
    for (const auto& [id, operation] : engine_.operations_) {
      const Time look = operation->check_stall(engine_.now());
      next_ = std::min(next_.value_or(look), look);
    }
    arm();
  }

 private:
  Engine& engine_;
  bool armed_ = false;
  std::optional<Time> next_;
};

Engine::Engine(Endpoint& endpoint, const Arithmetic& arithmetic, EngineOptions options)
    : endpoint_(endpoint),
      arithmetic_(arithmetic),
      options_(options),
      stall_timer_(std::make_unique<StallTimer>(*this)) {
  require(options.window >= 2, "the window of unacknowledged messages is {}, it must be at least 2",
          options.window);
  endpoint_.listen(*this);
}

Engine::~Engine() { close(); }

bool Engine::run() {
  std::swap(ready_, running_now_);
  for (std::coroutine_handle<> coroutine : running_now_) {
    coroutine.resume();
  }
  running_now_.clear();
  return !ready_.empty();
}

void Engine::close() {
  if (closed_) {
    return;
  }
  closed_ = true;
  for (const auto& [series, guest] : guests_) {
    guest->on_close();
  }
  for (const auto& [id, operation] : operations_) {
    operation->fail(closed_error(rank()), /*heard=*/true);
  }
  endpoint_.close();
  while (run()) {
  }
  check(operations_.empty(), "{} operations outlive their engine", operations_.size());
}

void Engine::Sleep::await_resume() const {
  if (reason_) {
    std::rethrow_exception(reason_);
  }
}

bool Engine::Sleep::start(std::coroutine_handle<> coroutine, Cancellation* cancellation) {
  if (engine_.closed_) {
    reason_ = closed_error(engine_.rank());
    return false;
  }
  coroutine_ = coroutine;
  engine_.endpoint_.timer(until_, *this);
  if (cancellation != nullptr) {
    cancellation->subscribe(*this);
  }
  return true;
}

void Engine::Sleep::finish(Finish how, std::size_t) {
  leave();
  if (how != Finish::Done && !reason_) {
    reason_ = closed_error(engine_.rank());
  }
  engine_.make_ready(coroutine_);
}

void Engine::Sleep::on_cancel(const std::exception_ptr& reason) {
  reason_ = reason;
  engine_.endpoint_.cancel(*this);
}

void Engine::on_control(Rank from, std::span<const std::byte> message) {
  check(message.size() >= sizeof(Header), "a control message of {} bytes from worker {}",
        message.size(), from);
  Header header;
  std::memcpy(&header, message.data(), sizeof(Header));
  const std::span<const std::byte> payload = message.subspan(sizeof(Header));
  switch (header.letter) {
    case Letter::Data:
    case Letter::Hello:
      return on_data(from, header, payload);
    case Letter::Abort:
      return on_abort(from, header, payload);
    case Letter::Query: {
      const Ended& known = ended(header.operation);
      const bool began =
          operations_.contains(header.operation) || (known.known && known.id == header.operation);
      return post(from,
                  {.operation = header.operation,
                   .signature = {},
                   .letter = Letter::Answer,
                   .slot = began ? 1u : 0u},
                  {});
    }
    case Letter::Answer:
      if (const auto known = operations_.find(header.operation); known != operations_.end()) {
        known->second->answered(from, header.slot != 0);
      }
      return;
    case Letter::Ack:
      return on_ack(from, payload);
    case Letter::Guest:
      return on_guest(from, header, payload);
  }
  check(false, "a control message of unknown kind {} from worker {}",
        static_cast<unsigned>(header.letter), from);
}

void Engine::on_data(Rank from, const Header& header, std::span<const std::byte> payload) {
  if (const auto known = operations_.find(header.operation); known != operations_.end()) {
    return known->second->deliver(from, header, payload);
  }
  const Ended& past = ended(header.operation);
  if (past.known && past.id == header.operation) {
    if (past.signature != header.signature) {
      post_abort(from, header.operation, past.signature,
                 Error(ErrorCode::Mismatch,
                       fmt::format("worker {} has ended {} {} without worker {}", rank(),
                                   name_of(past.signature.kind), header.operation, from)));
    }
    return consumed(from, header.operation);
  }
  if (refused_.contains(header.operation) || is_over(header.operation)) {
    return consumed(from, header.operation);
  }
  early_[header.operation].push_back({from, header, {payload.begin(), payload.end()}});
}

void Engine::on_abort(Rank from, const Header& header, std::span<const std::byte> payload) {
  check(!payload.empty(), "an abort without a reason from worker {}", from);
  const auto code = static_cast<ErrorCode>(payload[0]);
  const std::string text(reinterpret_cast<const char*>(payload.data()) + 1, payload.size() - 1);
  const auto failure = std::make_exception_ptr(Error(code, text));
  if (const auto known = operations_.find(header.operation); known != operations_.end()) {
    // Who fails because of a member of another group has its own to tell.
    return known->second->fail(failure, /*heard=*/header.signature == known->second->signature_);
  }
  const Ended& past = ended(header.operation);
  if (past.known && past.id == header.operation) {
    return;
  }
  refused_.emplace(header.operation, Refused{header.signature, failure});
  if (refused_.size() > kMostRefused) {
    refused_.erase(refused_.begin());
  }
  for (const Mail& mail : take_early(header.operation)) {
    consumed(mail.from, header.operation);
  }
}

void Engine::on_ack(Rank from, std::span<const std::byte> payload) {
  Window& flow = window(from);
  for (std::size_t at = 0; at + sizeof(AckEntry) <= payload.size(); at += sizeof(AckEntry)) {
    AckEntry entry;
    std::memcpy(&entry, payload.data() + at, sizeof(entry));
    flow.acknowledged(entry);
  }
  for (const auto& [id, operation] : operations_) {
    operation->wake(&flow);
  }
}

void Engine::on_lost(Rank peer) {
  if (!lost(peer)) {
    lost_.push_back(peer);
  }
  for (const auto& [series, guest] : guests_) {
    guest->on_lost(peer);
  }
  for (const auto& [id, operation] : operations_) {
    operation->peer_lost(peer);
  }
}

bool Engine::needs(Rank peer) const {
  return std::any_of(operations_.begin(), operations_.end(),
                     [&](const auto& entry) { return entry.second->has(peer); }) ||
         std::any_of(guests_.begin(), guests_.end(),
                     [&](const auto& entry) { return entry.second->needs(peer); });
}

// --- Guests ------------------------------------------------------------------------------------

void Engine::invite(std::uint64_t series, Guest& guest) {
  require(!dismissed_.contains(series) && !guests_.contains(series),
          "series {} has been used before on worker {}", series, rank());
  newest_series_ = std::max(newest_series_, series);
  guests_.emplace(series, &guest);
  for (const Rank peer : lost_) {
    guest.on_lost(peer);
  }
  std::vector<Mail> before;
  if (const auto known = waiting_for_guests_.find(series); known != waiting_for_guests_.end()) {
    before = std::move(known->second);
  }
  waiting_for_guests_.erase(series);
  for (const Mail& mail : before) {
    guest.on_message(mail.from, mail.header.slot, mail.payload);
  }
}

void Engine::dismiss(std::uint64_t series) {
  guests_.erase(series);
  dismissed_.insert(series);
}

void Engine::on_guest(Rank from, const Header& header, std::span<const std::byte> payload) {
  if (const auto guest = guests_.find(header.operation); guest != guests_.end()) {
    return guest->second->on_message(from, header.slot, payload);
  }
  if (!dismissed_.contains(header.operation)) {
    waiting_for_guests_[header.operation].push_back(
        {from, header, {payload.begin(), payload.end()}});
  }
}

void Engine::post_to_guest(Rank to, std::uint64_t series, std::uint32_t kind,
                           std::span<const std::byte> message) {
  post(to, {.operation = series, .signature = {}, .letter = Letter::Guest, .slot = kind},
       {message.data(), message.size()});
}

// Ids of guests' operations have the top bit set; below it are 7 bits of the series.
bool Engine::is_over(std::uint64_t id) const {
  if ((id & kGuestId) == 0) {
    return false;
  }
  const std::uint64_t series = (id & ~kGuestId) >> kSeriesShift;
  for (const auto& [number, guest] : guests_) {
    if (number % kSeries == series) {
      return guest->is_over(id);
    }
  }
  // Of the numbers that these bits may mean, the one nearest the newest.
  const std::uint64_t back = (newest_series_ % kSeries + kSeries - series) % kSeries;
  return back < kSeries / 2 && back <= newest_series_ && dismissed_.contains(newest_series_ - back);
}

void Engine::drop_over() {
  std::vector<std::uint64_t> over;
  for (const auto& [id, mail] : early_) {
    if (is_over(id)) {
      over.push_back(id);
    }
  }
  for (const std::uint64_t id : over) {
    for (const Mail& mail : take_early(id)) {
      consumed(mail.from, id);
    }
  }
}

void Engine::post(Rank to, const Header& header, ConstBlob payload) {
  if (closed_ || lost(to)) {
    return;
  }
  std::array<std::byte, kMaxControl> message;
  std::memcpy(message.data(), &header, sizeof(Header));
  check(payload.size <= kSmall, "a control message of {} bytes", payload.size);
  if (payload.data != nullptr) {
    std::memcpy(message.data() + sizeof(Header), payload.data, payload.size);
  } else {
    std::memset(message.data() + sizeof(Header), 0, payload.size);
  }
  endpoint_.control(to, std::span(message).first(sizeof(Header) + payload.size));
}

void Engine::post_abort(Rank to, std::uint64_t id, const Signature& signature, const Error& error) {
  std::string payload(1, static_cast<char>(error.code()));
  payload += std::string_view(error.what()).substr(0, kSmall - 1);
  post(to, {.operation = id, .signature = signature, .letter = Letter::Abort, .slot = 0},
       {reinterpret_cast<const std::byte*>(payload.data()), payload.size()});
}

const Engine::KnownGroup& Engine::know(std::span<const Rank> members) {
  if (std::equal(members.begin(), members.end(), group_.members.begin(), group_.members.end())) {
    return group_;
  }
  group_.members.assign(members.begin(), members.end());
  group_.hash = 0xCBF29CE484222325u;  // FNV-1a over the ranks
  for (Rank r : members) {
    group_.hash = (group_.hash ^ r.value) * 0x100000001B3u;
  }
  const bool rising = std::adjacent_find(members.begin(), members.end(),
                                         [](Rank a, Rank b) { return !(a < b); }) == members.end();
  group_.valid = rising && (members.empty() || members.back().index() < size());
  return group_;
}

void Engine::begin(Operation& operation) {
  operations_.emplace(operation.id_, &operation);
  stall_timer_->arm();
}

void Engine::end(Operation& operation) {
  operations_.erase(operation.id_);
  refused_.erase(operation.id_);
  ended(operation.id_) = {.id = operation.id_, .known = true, .signature = operation.signature_};
  // There is some if it never began.
  for (const Mail& mail : take_early(operation.id_)) {
    on_data(mail.from, mail.header, mail.payload);
  }
}

std::vector<Engine::Mail> Engine::take_early(std::uint64_t id) {
  const auto known = early_.find(id);
  if (known == early_.end()) {
    return {};
  }
  std::vector<Mail> mail = std::move(known->second);
  early_.erase(known);
  return mail;
}

Window& Engine::window(Rank peer) {
  return windows_.try_emplace(peer, options_.window).first->second;
}

void Engine::consumed(Rank peer, std::uint64_t id) {
  Window& flow = window(peer);
  if (!flow.consumed(id)) {
    return;
  }
  const std::vector<AckEntry> entries = flow.take_acks();
  constexpr std::size_t kPerMessage = kSmall / sizeof(AckEntry);
  for (std::size_t at = 0; at < entries.size(); at += kPerMessage) {
    const std::size_t n = std::min(kPerMessage, entries.size() - at);
    post(peer, {.operation = 0, .signature = {}, .letter = Letter::Ack, .slot = 0},
         {reinterpret_cast<const std::byte*>(&entries[at]), n * sizeof(AckEntry)});
  }
}

}  // namespace starling::comm
