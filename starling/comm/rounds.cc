#include "starling/comm/rounds.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "starling/base/error.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/barrier.h"
#include "starling/comm/gather.h"
#include "starling/comm/neighbour_exchange.h"
#include "starling/comm/neighbourhood.h"
#include "starling/comm/push_sum.h"
#include "starling/topology/analysis.h"

namespace starling::comm {
namespace {

// The kinds of messages between rounds.
constexpr std::uint32_t kView = 0;
constexpr std::uint32_t kNote = 1;

// The parts of a version, each an operation of its own.
constexpr std::uint64_t kLabels = 0;
constexpr std::uint64_t kClosing = 1;
constexpr std::uint64_t kFirstPart = 2;
constexpr std::uint64_t kParts = 256;

std::exception_ptr interruption() {
  // As a loss: the others know by themselves.
  return std::make_exception_ptr(Error(ErrorCode::Lost, "interrupted by the loss of a worker"));
}

}  // namespace

Rounds::Rounds(Engine& engine, const topology::Schedule& schedule, Contribution& contribution,
               RoundsOptions options, Observer observer)
    : engine_(engine),
      schedule_(schedule),
      contribution_(contribution),
      options_(options),
      observer_(std::move(observer)),
      view_(topology::View::full(static_cast<std::uint32_t>(engine.size()))),
      membership_(engine.rank(), view_, *this),
      changed_(engine),
      progressed_(engine),
      alarm_(engine, changed_),
      trigger_(make_trigger(options.trigger, *this)) {
  require(!options.sync_period || *options.sync_period > 0, "the sync period is 0");
  next_ = finished_ = synced_ = first_ = least_ = options.first;
}

Rounds::~Rounds() {
  // run() has seen to it that nothing refers to this.
  if (under_way_ || alarm_.pending()) {
    std::terminate();
  }
}

// --- The loop ----------------------------------------------------------------------------------

Task<void> Rounds::run() {
  engine_.invite(options_.series, *this);
  try {
    while (!leaving_) {
      throw_if_ended();
      if (!membership_.frozen()) {
        if (next_ < first_) {
          skip_to(first_);
        }
        if (!entered_ && !is_closing(next_)) {
          entered_ = true;
          trigger_->entered(next_);
        }
        if (may_start()) {
          co_await one_version();
          continue;
        }
      }
      co_await changed_;
    }
  } catch (...) {
    failure_ = failure_ ? failure_ : std::current_exception();
  }
  over_ = true;
  alarm_.off();
  progressed_.raise();
  while (alarm_.pending()) {
    co_await changed_;
  }
  engine_.drop_over();
  engine_.dismiss(options_.series);
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

bool Rounds::may_start() {
  if (options_.last && next_ >= *options_.last) {
    return closing_ && is_closing(next_);
  }
  if (!contribution_.is_free()) {
    return false;
  }
  const bool arrived = contribution_.has(next_);
  return is_sync(next_) ? arrived : trigger_->may_start(next_, arrived);
}

Task<void> Rounds::one_version() {
  const Known row = known(next_);
  const bool closing = is_closing(next_);
  const Contribution::Pass pass = closing ? Contribution::Pass{} : contribution_.begin();
  prepare(row, pass);
  under_way_ = true;
  interrupted_ = prepared_ = committed_ = false;
  std::exception_ptr error;
  exchange_.emplace(exchange(row, pass));
  try {
    co_await *exchange_;
  } catch (...) {
    error = std::current_exception();
  }
  exchange_.reset();
  // Interrupted: wait for what is agreed.
  while (!committed_ && interrupted_ && membership_.frozen() && !leaving_ && !failure_ &&
         !engine_.closed()) {
    co_await changed_;
  }
  if (!committed_ && prepared_ && first_ > next_) {
    mark_ended();
  }
  under_way_ = false;
  entered_ = false;
  if (committed_) {
    co_await finish(closing);
    co_return;
  }
  if (!closing) {
    contribution_.drop();
  }
  if (!interrupted_) {
    std::rethrow_exception(error);
  }
}

void Rounds::prepare(const Known& known, const Contribution::Pass& pass) {
  const Trigger::Activation start = is_sync(next_) || is_closing(next_)
                                        ? Trigger::Activation{.by = rank(), .at = now(), .hops = 0}
                                        : trigger_->activation(next_);
  outcome_ = {.version = next_,
              .epoch = membership_.epoch(),
              .is_sync = is_sync(next_) || is_closing(next_),
              .own = pass.step,
              .activator = start.by,
              .push_weight = pass.push_weight,
              .activated = start.at,
              .started = now(),
              .bytes = pass.in.blob.size};
  if (const auto* group = std::get_if<topology::Group>(&known.row)) {
    outcome_.form = Form::Sum;
    outcome_.members = known.members;
    outcome_.self_weight = group->is_uniform() ? 0 : group->self_weight;
  } else {
    outcome_.form = Form::Mix;
    outcome_.members.clear();
    bool self = false;
    for (const topology::Edge& edge : std::get<topology::Neighbours>(known.row).in) {
      if (!self && rank() < edge.peer) {
        outcome_.members.push_back(rank());
        self = true;
      }
      outcome_.members.push_back(edge.peer);
    }
    if (!self) {
      outcome_.members.push_back(rank());
    }
  }
  outcome_.steps.assign(outcome_.members.size(), pass.step);
}

void Rounds::commit() {
  if (interrupted_) {
    std::rethrow_exception(interruption());
  }
  mark_ended();
}

void Rounds::mark_ended() {
  ++next_;
  committed_ = true;
  synced_ = outcome_.is_sync ? next_ : synced_;
}

Task<void> Rounds::finish(bool closing) {
  outcome_.finished = now();
  if (!closing) {
    co_await contribution_.end(outcome_);
    if (observer_) {
      observer_(outcome_);
    }
  }
  known_.erase(known_.begin(), known_.lower_bound(next_));
  finished_ = next_;
  progressed_.raise();
}

void Rounds::skip_to(Version first) {
  for (; next_ < first; ++next_) {
    if (is_closing(next_)) {
      continue;
    }
    ++void_rounds_;
    contribution_.skipped(next_);
    if (observer_) {
      Outcome nothing;
      nothing.version = next_;
      nothing.epoch = membership_.epoch();
      nothing.is_void = true;
      nothing.is_sync = is_sync(next_);
      nothing.finished = now();
      observer_(nothing);
    }
  }
  finished_ = next_;
  known_.erase(known_.begin(), known_.lower_bound(next_));
  progressed_.raise();
}

// --- The exchange ------------------------------------------------------------------------------

Task<void> Rounds::exchange(Known known, Contribution::Pass pass) {
  if (std::holds_alternative<topology::Group>(known.row)) {
    co_await in_group(known.members, pass);
  } else {
    co_await with_neighbours(std::get<topology::Neighbours>(known.row), pass);
  }
  commit();
}

Task<void> Rounds::in_group(std::span<const Rank> members, Contribution::Pass pass) {
  const bool in_person = outcome_.is_sync || options_.trigger.when == TriggerOptions::When::All;
  const std::span<const Rank> told = in_person ? std::span<const Rank>() : members;
  Running<void> labels(gather_labels(told, pass.step));
  std::exception_ptr error;
  try {
    co_await sum_parts(members, pass);
  } catch (...) {
    error = std::current_exception();
    labels.cancel(error);
  }
  try {
    co_await labels;
  } catch (...) {
    error = error ? error : std::current_exception();
  }
  if (error) {
    std::rethrow_exception(error);
  }
  if (outcome_.is_sync && members.size() > 1) {
    if (interrupted_) {
      std::rethrow_exception(interruption());
    }
    prepared_ = true;
    co_await barrier(engine_, {.id = id(kClosing), .members = members});
  }
}

Task<void> Rounds::sum_parts(std::span<const Rank> members, Contribution::Pass pass) {
  const std::vector<std::size_t> ends = parts_of(pass);
  const Precision precision = options_.bf16 ? Precision::Bf16 : Precision::Full;
  std::size_t begin = 0;
  for (std::size_t k = 0; k < ends.size(); begin = ends[k++]) {
    co_await contribution_.ready(k);
    const Time begun = now();
    co_await all_reduce(engine_, {.id = id(kFirstPart + k), .members = members},
                        {pass.in.type, pass.in.blob.slice(begin, ends[k])},
                        {pass.out.type, pass.out.blob.slice(begin, ends[k])}, AllReduce::Auto,
                        precision);
    note_exchange(k, begun);
    contribution_.arrived(k, outcome_);
    progressed_.raise();
  }
}

// Where they end; none of a pass without payload.
std::vector<std::size_t> Rounds::parts_of(const Contribution::Pass& pass) const {
  if (pass.in.blob.size == 0) {
    return {};
  }
  check(options_.parts.empty() || options_.parts.back() == pass.in.blob.size,
        "parts of another model");
  return options_.parts.empty() ? std::vector{pass.in.blob.size} : options_.parts;
}

Task<void> Rounds::gather_labels(std::span<const Rank> members, Step own) {
  if (members.size() < 2) {
    co_return;
  }
  std::vector<Label> labels(members.size());
  const auto self = std::lower_bound(members.begin(), members.end(), rank()) - members.begin();
  labels[static_cast<std::size_t>(self)] = {own.value, trigger_->lateness().count()};
  co_await gather(engine_, {.id = id(kLabels), .members = members},
                  std::as_writable_bytes(std::span(labels)));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    outcome_.steps[i] = Step{labels[i].step};
    trigger_->learnt(Duration(labels[i].lateness));
  }
}

Task<void> Rounds::with_neighbours(const topology::Neighbours& row, Contribution::Pass pass) {
  if (options_.trigger.when != TriggerOptions::When::All) {
    for (const topology::Edge& edge : row.out) {
      send(edge.peer, {.version = next_, .kind = Note::Kind::Label, .handed = pass.step.value});
    }
  }
  if (options_.push) {
    const Time begun = now();
    const Pushed pushed =
        co_await push_sum(engine_, id(kFirstPart), row, pass.push_weight, pass.in, pass.out);
    note_exchange(0, begun);
    outcome_.push_weight = pushed.weight;
  } else {
    co_await mix_parts(row, pass);
  }
  if (options_.trigger.when != TriggerOptions::When::All) {
    co_await hear_labels(pass.step);
  }
}

Task<void> Rounds::mix_parts(const topology::Neighbours& row, Contribution::Pass pass) {
  const std::vector<std::size_t> ends = parts_of(pass);
  std::size_t begin = 0;
  for (std::size_t k = 0; k < ends.size(); begin = ends[k++]) {
    co_await contribution_.ready(k);
    const Time begun = now();
    co_await neighbour_exchange(engine_, id(kFirstPart + k), row,
                                {pass.in.type, pass.in.blob.slice(begin, ends[k])},
                                {pass.out.type, pass.out.blob.slice(begin, ends[k])});
    note_exchange(k, begun);
    contribution_.arrived(k, outcome_);
    progressed_.raise();
  }
}

void Rounds::note_exchange(std::size_t part, Time begun) {
  const Time ended = now();
  outcome_.exchanging += ended - begun;
  if (options_.exchanged) {
    options_.exchanged(part, begun, ended);
  }
}

Task<void> Rounds::hear_labels(Step own) {
  for (std::size_t i = 0; i < outcome_.members.size(); ++i) {
    const Rank member = outcome_.members[i];
    const std::pair key(outcome_.version, member);
    while (member != rank() && !labels_.contains(key)) {
      throw_if_ended();
      co_await changed_;
    }
    outcome_.steps[i] = member == rank() ? own : labels_[key];
  }
  labels_.erase(labels_.begin(), labels_.lower_bound({outcome_.version + 1, Rank{0}}));
}

// Low 24 bits, which name messages under way between two workers: 12 of the version, 8 of the part,
// 4 of the epoch. Rising with epoch and version.
std::uint64_t Rounds::id(std::uint64_t part) const {
  check(part < kParts, "a model of more than {} parts", kParts - kFirstPart);
  const std::uint64_t epoch = outcome_.epoch;
  const std::uint64_t version = next_ + options_.series * 1009;
  return kGuestId | ((options_.series % kSeries) << kSeriesShift) | ((epoch >> 4) << 48) |
         (version << 12) | (part << 4) | (epoch & 15);
}

bool Rounds::is_over(std::uint64_t id) const {
  const std::uint64_t epoch = (((id >> 48) & 0xFF) << 4) | (id & 15);
  return over_ || epoch < membership_.epoch();
}

const Rounds::Known& Rounds::known(Version v) {
  const auto place = known_.find(v);
  if (place != known_.end()) {
    return place->second;
  }
  Known row{schedule_.row(Step{static_cast<std::int64_t>(v)}, rank(), view_), {}};
  if (is_sync(v) || is_closing(v)) {
    row.row = topology::uniform_group(view_.everybody());
  }
  if (const auto* group = std::get_if<topology::Group>(&row.row)) {
    row.members.assign(group->members.begin(), group->members.end());
  } else {
    row.members = members_of(rank(), std::get<topology::Neighbours>(row.row));
  }
  return known_.emplace(v, std::move(row)).first->second;
}

// --- The application ---------------------------------------------------------------------------

void Rounds::arrived(Version v) {
  if (is_sync(v) && options_.trigger.when != TriggerOptions::When::Need) {
    changed_.raise();
  } else {
    trigger_->arrived(v);
  }
}

Task<void> Rounds::ended(Version v) {
  if (finished_ <= v && !is_closing(v)) {
    trigger_->waits(v);
  }
  co_await until([this, v] { return finished_ > v; });
}

Task<void> Rounds::until(std::function<bool()> there) {
  while (!there()) {
    throw_if_ended();
    check(!over_, "worker {} waits for rounds that it has left", rank());
    co_await progressed_;
  }
}

Task<void> Rounds::end_together() {
  check(options_.last.has_value(), "it was not said after how many versions");
  closing_ = true;
  changed_.raise();
  co_await ended(*options_.last);
}

void Rounds::leave() {
  if (leaving_ || over_) {
    return;
  }
  leaving_ = true;
  membership_.leave();
  freeze();
}

void Rounds::throw_if_ended() const {
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  if (engine_.closed()) {
    throw Error(ErrorCode::Cancelled, fmt::format("the engine of worker {} was closed", rank()));
  }
}

// --- Messages ----------------------------------------------------------------------------------

void Rounds::on_message(Rank from, std::uint32_t kind, std::span<const std::byte> message) {
  if (over_ || failure_) {
    return;
  }
  if (kind == kView) {
    return membership_.heard(from, message);
  }
  Note note;
  check(message.size() == sizeof(note), "a note of {} bytes from worker {}", message.size(), from);
  std::memcpy(&note, message.data(), sizeof(note));
  if (membership_.ignores(from) || note.epoch < membership_.epoch()) {
    return;
  }
  if (note.epoch > membership_.epoch()) {
    early_.emplace_back(from, note);
    return;
  }
  hear(from, note);
}

void Rounds::hear(Rank from, const Note& note) {
  if (note.kind == Note::Kind::Label) {
    labels_[{note.version, from}] = Step{note.handed};
    return changed_.raise();
  }
  trigger_->heard(from, note);
}

void Rounds::send(Rank to, Note note) {
  note.epoch = membership_.epoch();
  ++notes_sent_;
  engine_.post_to_guest(to, options_.series, kNote, std::as_bytes(std::span(&note, 1)));
}

void Rounds::send_view(Rank to, std::span<const std::byte> message) {
  engine_.post_to_guest(to, options_.series, kView, message);
}

void Rounds::on_lost(Rank peer) {
  if (!over_ && !failure_) {
    membership_.lost(peer);
  }
}

void Rounds::on_close() {
  changed_.raise();
  progressed_.raise();
}

// --- Losses ------------------------------------------------------------------------------------

Version Rounds::freeze() {
  if (under_way_ && !committed_ && !interrupted_) {
    interrupted_ = true;
    exchange_->cancel(interruption());
  }
  if (under_way_ && !committed_ && !contribution_.can_repeat()) {
    least_ = next_ + 1;
  }
  changed_.raise();
  // Who leaves need not be caught up with, except in a sync that it has passed. What a view has
  // ended stays ended, even if run() has not had its turn since.
  return leaving_ ? synced_ : std::max({next_, first_, least_});
}

void Rounds::install(Epoch epoch, const topology::View& view, Version first) {
  view_ = view;
  if (!topology::is_connected(schedule_, view_)) {
    view_ = view_.packed();
  }
  first_ = first;
  known_.clear();
  labels_.clear();
  entered_ = false;
  engine_.drop_over();
  trigger_->installed();
  std::vector<std::pair<Rank, Note>> kept;
  for (auto& [from, note] : std::exchange(early_, {})) {
    if (note.epoch == epoch && view_.alive(from)) {
      hear(from, note);
    } else if (note.epoch > epoch) {
      kept.emplace_back(from, note);
    }
  }
  early_ = std::move(kept);
  changed_.raise();
}

void Rounds::fail(const Error& why) {
  failure_ = std::make_exception_ptr(why);
  freeze();
  progressed_.raise();
}

}  // namespace starling::comm
