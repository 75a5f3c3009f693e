#include "starling/comm/operation.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "starling/base/error.h"

namespace starling::comm {
namespace {

const Error* as_error(const std::exception_ptr& failure, std::optional<Error>& storage) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& e) {
    storage.emplace(e);
  } catch (const std::exception& e) {
    storage.emplace(ErrorCode::Bug, e.what());
  } catch (...) {
    storage.emplace(ErrorCode::Bug, "an exception of unknown type");
  }
  return &*storage;
}

}  // namespace

// --- Request ---------------------------------------------------------------------------------

bool Request::Awaiter::await_ready() const {
  return request.state_ == State::Arrived || request.operation_.failure_ != nullptr;
}

void Request::Awaiter::await_suspend(std::coroutine_handle<> body) const {
  request.operation_.wait(body, &request, request.position_, request.what_);
}

void Request::Awaiter::await_resume() const {
  request.operation_.throw_if_failed();
  request.operation_.free_request(request);
}

void Request::finish(Finish how, std::size_t bytes) {
  if (state_ == State::Send) {
    operation_.sent(*this, how);
  } else {
    operation_.received(*this, how, bytes);
  }
}

// --- Life of an operation --------------------------------------------------------------------

Operation::Operation(Engine& engine, Call call, Signature signature, Reach reach, Greet greet)
    : engine_(engine),
      id_(call.id),
      members_(call.members.begin(), call.members.end()),
      signature_(signature),
      reach_(reach),
      greet_(greet),
      peers_(members_.size()) {
  // The list may turn out not to be in order; see validate().
  const auto own = std::find(members_.begin(), members_.end(), engine.rank());
  is_member_ = own != members_.end();
  self_ = is_member_ ? static_cast<std::size_t>(own - members_.begin()) : 0;
  signature_.chunk = static_cast<std::uint32_t>(engine.options().chunk);
  signature_.members = reach == Reach::Group ? signature.members ^ engine.know(members_).hash : 0;
}

Operation::~Operation() {
  // run() has seen to it that nothing is under way.
  if (open_) {
    std::terminate();
  }
}

void Operation::validate() const {
  const std::string_view kind = name_of(signature_.kind);
  require(is_member_, "worker {} is not in the group of {} {}", engine_.rank(), kind, id_);
  if (engine_.know(members_).valid) {
    return;
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    require(members_[i].index() < engine_.size(),
            "{} {} on worker {} names worker {}, but there are only {} workers (0 … {})", kind, id_,
            engine_.rank(), members_[i], engine_.size(), engine_.size() - 1);
    require(i == 0 || members_[i - 1] < members_[i],
            "{} {} on worker {} names worker {} after worker {}: members must be in rank order, "
            "each once",
            kind, id_, engine_.rank(), members_[i], members_[i == 0 ? 0 : i - 1]);
  }
}

void Operation::open(Cancellation* cancellation) {
  heard_ = true;
  if (engine_.closed_) {
    throw Error(ErrorCode::Cancelled,
                fmt::format("the engine of worker {} was closed", engine_.rank()));
  }
  const Engine::Ended& past = engine_.ended(id_);
  require(!engine_.operations_.contains(id_) && !(past.known && past.id == id_),
          "operation {} has been used before on worker {}: each id is used once", id_,
          engine_.rank());
  // From here on the id is used, also if this never begins: what others send for it is answered.
  used_ = true;
  heard_ = false;
  validate();
  if (const auto refused = engine_.refused_.find(id_); refused != engine_.refused_.end()) {
    heard_ = refused->second.signature == signature_;
    std::rethrow_exception(refused->second.failure);
  }
  started_ = last_progress_ = engine_.now();
  open_ = true;
  engine_.begin(*this);
  for (Rank r : engine_.lost_) {
    peer_lost(r);
  }
  if (cancellation != nullptr) {
    cancellation->subscribe(*this);
  }
  for (const Engine::Mail& mail : engine_.take_early(id_)) {
    deliver(mail.from, mail.header, mail.payload);
  }
  throw_if_failed();
  greet();
}

// "I am in": with small messages every message says so; ahead of bulk data, and where a member may
// have nothing to send, it has to be said. In a group it is enough that everyone compares with the
// member before it.
void Operation::greet() {
  const bool small = signature_.elements * size_of(signature_.type) <= kSmall;
  if (count() == 1 || greet_ == Greet::Never || (small && greet_ == Greet::BeforeBulk)) {
    return;
  }
  if (reach_ == Reach::Group) {
    greetings_expected_ = 1;
    return greet(after(1));
  }
  greetings_expected_ = count() - 1;
  for (std::size_t i = 0; i < count(); ++i) {
    if (i != self_) {
      greet(i);
    }
  }
}

void Operation::greet(std::size_t position) {
  engine_.window(members_[position]).sent(id_);
  engine_.post(members_[position],
               {.operation = id_, .signature = signature_, .letter = Letter::Hello, .slot = 0}, {});
}

Task<Report> Operation::run(Task<void> body) {
  try {
    open(co_await current_cancellation());
    co_await body;
    co_await Greetings{*this};
    co_await Drain{*this};
    throw_if_failed();
  } catch (...) {
    fail(std::current_exception(), heard_);
  }
  co_await Drain{*this};
  leave();
  open_ = false;
  if (used_) {
    for (std::size_t i = 0; i < count(); ++i) {
      for (std::size_t unread = peers_[i] ? peers_[i]->unread.size() : 0; unread > 0; --unread) {
        engine_.consumed(members_[i], id_);
      }
    }
    engine_.end(*this);
  }
  if (failure_) {
    announce();
    std::rethrow_exception(failure_);
  }
  Report report{.started = started_, .finished = engine_.now(), .waits = {}};
  for (std::size_t i = 0; i < count(); ++i) {
    if (peers_[i] && peers_[i]->waited > Duration(0)) {
      report.waits.push_back({members_[i], peers_[i]->waited});
    }
  }
  co_return report;
}

// --- Sending and receiving -------------------------------------------------------------------

Request& Operation::receive(std::size_t from, Slot slot, Blob into, const char* what) {
  check(from < count() && from != self_, "operation {} receives from position {} of {}", id_, from,
        count());
  const bool small = into.size <= kSmall;
  Request& request =
      new_request(small ? Request::State::Mail : Request::State::Receive, from, slot);
  request.into_ = into;
  request.what_ = what;
  if (failure_) {
    return request;
  }
  if (!small) {
    ++under_way_;
    engine_.endpoint_.receive(members_[from], tag(slot), into, request);
    return request;
  }
  Peer& source = peer(from);
  request.next_ = std::exchange(source.expected, &request);
  const auto mail = std::find_if(source.unread.begin(), source.unread.end(),
                                 [&](const auto& m) { return m.header.slot == slot; });
  if (mail != source.unread.end()) {
    const Engine::Mail taken = std::move(*mail);
    source.unread.erase(mail);
    deliver(taken.from, taken.header, taken.payload);
  }
  return request;
}

bool Operation::try_send(const Sending& sending) {
  if (failure_) {
    return true;
  }
  check(sending.to < count() && sending.to != self_, "operation {} sends to position {} of {}", id_,
        sending.to, count());
  const Rank to = members_[sending.to];
  if (sending.data.size <= kSmall) {
    Window& window = engine_.window(to);
    if (!window.admits(id_)) {
      return false;
    }
    window.sent(id_);
    engine_.post(
        to,
        {.operation = id_, .signature = signature_, .letter = Letter::Data, .slot = sending.slot},
        sending.data);
    return true;
  }
  Peer& target = peer(sending.to);
  if (target.sends >= engine_.options().window) {
    return false;
  }
  Request& request = new_request(Request::State::Send, sending.to, sending.slot);
  request.loan_ = sending.loan;
  if (sending.loan != nullptr) {
    sending.loan->out = true;
  }
  ++target.sends;
  ++under_way_;
  engine_.endpoint_.send(to, tag(sending.slot), sending.data, request);
  return true;
}

void Operation::Sending::await_suspend(std::coroutine_handle<> body) const {
  const void* on = data.size <= kSmall
                       ? static_cast<const void*>(&operation.engine_.window(operation.member(to)))
                       : &operation.peer(to);
  operation.wait(body, on, to, "room in its window", this);
}

void Operation::deliver(Rank from, const Header& header, std::span<const std::byte> payload) {
  const auto place = std::lower_bound(members_.begin(), members_.end(), from);
  if (header.signature != signature_ || place == members_.end() || *place != from) {
    engine_.consumed(from, id_);
    return mismatch(from, header.signature);
  }
  if (failure_) {
    return engine_.consumed(from, id_);
  }
  const std::size_t position = static_cast<std::size_t>(place - members_.begin());
  Peer& sender = peer(position);
  progress();
  if (header.letter == Letter::Hello) {
    engine_.consumed(from, id_);
    ++greetings_;
    return greetings_ == greetings_expected_ ? wake(&greetings_) : void();
  }
  for (Request** link = &sender.expected; *link != nullptr; link = &(*link)->next_) {
    Request& request = **link;
    if (request.slot_ != header.slot) {
      continue;
    }
    *link = request.next_;
    engine_.consumed(from, id_);
    if (request.into_.data != nullptr && payload.size() == request.into_.size) {
      std::memcpy(request.into_.data, payload.data(), payload.size());
    }
    return received(request, Finish::Done, payload.size());
  }
  sender.unread.push_back({from, header, {payload.begin(), payload.end()}});
}

void Operation::sent(Request& request, Finish how) {
  --under_way_;
  Peer& target = peer(request.position_);
  --target.sends;
  progress();
  const std::size_t position = request.position_;
  Loan* loan = request.loan_;
  if (loan != nullptr) {
    loan->out = false;
  }
  free_request(request);
  if (how == Finish::Lost) {
    peer_lost(members_[position]);
  }
  wake(&target);
  wake(&under_way_);
  if (loan != nullptr) {
    wake(loan);
  }
}

void Operation::received(Request& request, Finish how, std::size_t bytes) {
  under_way_ -= request.state_ == Request::State::Receive ? 1 : 0;
  request.state_ = Request::State::Arrived;
  progress();
  // A result that comes while contributions are awaited is not what the time was spent on.
  if (request.what_ == waiting_.what) {
    charge(request.position_);
  }
  if (how == Finish::Lost) {
    peer_lost(members_[request.position_]);
  } else if (how == Finish::Done && bytes != request.into_.size) {
    fail(std::make_exception_ptr(
        Error(ErrorCode::Mismatch,
              fmt::format("{}: worker {} sent {} bytes where worker {} awaited {} as {}", title(),
                          members_[request.position_], bytes, engine_.rank(), request.into_.size,
                          request.what_))));
  }
  wake(&request);
  wake(&under_way_);
}

// --- Waiting ---------------------------------------------------------------------------------

void Operation::wait(std::coroutine_handle<> body, const void* on,
                     std::optional<std::size_t> position, const char* what,
                     const Sending* sending) {
  waiting_ = {.body = body,
              .on = on,
              .position = position,
              .what = what,
              .since = engine_.now(),
              .sending = sending};
}

void Operation::wake(const void* on) {
  if (waiting_.body == nullptr || waiting_.on != on || (on == &under_way_ && under_way_ != 0)) {
    return;
  }
  if (waiting_.sending != nullptr && !try_send(*waiting_.sending)) {
    return;
  }
  if (waiting_.position) {
    charge(*waiting_.position);
  }
  engine_.make_ready(std::exchange(waiting_.body, nullptr));
}

// The time spent waiting since the last message is charged to the one who ended it: so it does not
// matter in which order the body asks for messages that may come in any order.
void Operation::charge(std::size_t position) {
  if (waiting_.body != nullptr) {
    const Time now = engine_.now();
    peer(position).waited += now - std::exchange(waiting_.since, now);
  }
}

void Operation::Returning::await_suspend(std::coroutine_handle<> body) const {
  operation.wait(body, loan, from, "its receipt of an earlier piece");
}

void Operation::Drain::await_suspend(std::coroutine_handle<> body) const {
  operation.wait(body, &operation.under_way_, std::nullopt, "its messages to be taken");
}

bool Operation::Greetings::await_ready() const {
  return operation.greetings_ >= operation.greetings_expected_ || operation.failure_ != nullptr;
}

void Operation::Greetings::await_suspend(std::coroutine_handle<> body) const {
  // In a group it is known whose is missing.
  const std::optional<std::size_t> from =
      operation.reach_ == Reach::Group ? std::optional(operation.before(1)) : std::nullopt;
  operation.wait(body, &operation.greetings_, from, "the greeting");
}

// --- Failing ---------------------------------------------------------------------------------

void Operation::fail(std::exception_ptr error, bool heard) {
  if (failure_) {
    return;
  }
  failure_ = std::move(error);
  heard_ = heard;
  for (Request& request : requests_) {
    if (request.state_ == Request::State::Send || request.state_ == Request::State::Receive) {
      engine_.endpoint_.cancel(request);
    }
  }
  if (waiting_.body != nullptr && waiting_.on != &under_way_) {
    engine_.make_ready(std::exchange(waiting_.body, nullptr));
  }
}

void Operation::announce() const {
  std::optional<Error> storage;
  const Error* error = as_error(failure_, storage);
  const bool others_know = heard_ || error->code() == ErrorCode::Lost;
  if (!is_member_ || (others_know && reach_ == Reach::Group)) {
    return;
  }
  std::string text = error->what();
  if (text.find(title()) == std::string::npos) {
    text = fmt::format("{} failed on worker {}: {}", title(), engine_.rank(), text);
  }
  for (Rank r : members_) {
    if (r != engine_.rank() && r.index() < engine_.size()) {
      engine_.post_abort(r, id_, signature_, Error(error->code(), text));
    }
  }
}

void Operation::mismatch(Rank from, const Signature& theirs) {
  const auto say = [](const Signature& s) {
    return fmt::format("{} of {} {}{}", name_of(s.kind), s.elements, name_of(s.type),
                       s.precision == Precision::Bf16 ? " as bf16" : "");
  };
  std::string text = fmt::format("{}: worker {} brings {}, worker {} brings {}", title(),
                                 engine_.rank(), say(signature_), from, say(theirs));
  if (say(theirs) == say(signature_)) {
    text += theirs == signature_ ? "; only one of them takes the other for a neighbour"
            : theirs.members != signature_.members
                ? "; they name different groups or roots"
                : "; they were configured with different algorithms or chunk lengths";
  }
  const Error error(ErrorCode::Mismatch, text);
  engine_.post_abort(from, id_, signature_, error);
  fail(std::make_exception_ptr(error));
}

void Operation::peer_lost(Rank peer) {
  if (std::binary_search(members_.begin(), members_.end(), peer)) {
    fail(std::make_exception_ptr(Error(
        ErrorCode::Lost, fmt::format("{}: worker {} was lost{}", title(), peer, waiting_text()))));
  }
}

void Operation::on_cancel(const std::exception_ptr& reason) { fail(reason); }

void Operation::throw_if_failed() const {
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

// --- Small things ----------------------------------------------------------------------------

Blob Operation::scratch(std::size_t bytes) {
  scratch_.push_back(arithmetic().scratch(bytes));
  return scratch_.back().blob();
}

std::span<std::byte> Operation::memory(std::size_t bytes) {
  memory_.push_back(std::make_unique<std::byte[]>(bytes));
  return {memory_.back().get(), bytes};
}

std::span<Loan> Operation::loans(std::size_t count) {
  loans_.push_back(std::make_unique<Loan[]>(count));
  return {loans_.back().get(), count};
}

std::size_t Operation::position_of(Rank rank) const {
  const auto place = std::lower_bound(members_.begin(), members_.end(), rank);
  check(place != members_.end() && *place == rank, "worker {} is not in operation {}", rank, id_);
  return static_cast<std::size_t>(place - members_.begin());
}

Request& Operation::new_request(Request::State state, std::size_t position, Slot slot) {
  check(slot < (1u << 28), "slot {} of operation {} does not fit the tag", slot, id_);
  if (free_ == nullptr) {
    free_ = &requests_.emplace_back(*this);
  }
  Request& request = *std::exchange(free_, free_->next_);
  request.state_ = state;
  request.position_ = static_cast<std::uint32_t>(position);
  request.slot_ = slot;
  request.loan_ = nullptr;
  request.next_ = nullptr;
  return request;
}

void Operation::free_request(Request& request) {
  request.state_ = Request::State::Free;
  request.next_ = std::exchange(free_, &request);
}

// 24 bits of the operation, 12 of its signature (so that data of a mismatched call never lands in
// a buffer), 28 of the slot.
Tag Operation::tag(Slot slot) const {
  const std::uint64_t shape = (signature_.elements * 0x9E3779B97F4A7C15u) ^ signature_.members ^
                              (static_cast<std::uint64_t>(signature_.kind) << 50) ^
                              (static_cast<std::uint64_t>(signature_.type) << 54) ^
                              (static_cast<std::uint64_t>(signature_.algorithm) << 58) ^
                              (static_cast<std::uint64_t>(signature_.precision) << 62) ^
                              signature_.chunk;
  return ((id_ & 0xFFFFFF) << 40) | (((shape * 0x9E3779B97F4A7C15u) >> 52) << 28) | slot;
}

std::string Operation::title() const { return fmt::format("{} {}", name_of(signature_.kind), id_); }

std::string Operation::waiting_text() const {
  if (waiting_.body == nullptr) {
    return "";
  }
  return waiting_.position ? fmt::format("; worker {} awaited {} from worker {}", engine_.rank(),
                                         waiting_.what, members_[*waiting_.position])
                           : fmt::format("; worker {} awaited {}", engine_.rank(), waiting_.what);
}

}  // namespace starling::comm
