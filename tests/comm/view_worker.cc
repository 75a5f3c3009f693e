#include "tests/comm/view_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "starling/base/random.h"

namespace starling::test {

using comm::Epoch;
using comm::Version;

ViewWorker::ViewWorker(sim::Network& network, const topology::Schedule& schedule,
                       const ViewPlan& plan, Rank self, Flaw flaw)
    : network_(network),
      schedule_(schedule),
      plan_(plan),
      self_(self),
      flaw_(flaw),
      endpoint_(network.endpoint(self)),
      membership_(self, topology::View::full(plan.workers()), *this) {
  endpoint_.listen(*this);
}

void ViewWorker::start() {
  cue(Cue::Start, 0);
  if (plan_.cut) {
    RandomSequence draw(Random(plan_.seed).stream(8).stream(self_.value));
    const Cut& cut = *plan_.cut;
    for (std::uint32_t r = 0; r < plan_.workers(); ++r) {
      if (cut.side.contains({r}) != cut.side.contains(self_)) {
        after(cut.at + (cut.until - cut.at) * draw.uniform(), [this, r] { on_lost({r}); });
      }
    }
  }
  advance();
}

// What is to happen then.
void ViewWorker::cue(Cue cue, int nth) {
  const auto now = [&](Rank who, const Moment& when) {
    return who == self_ && when.cue == cue && when.nth == nth;
  };
  for (const Doubt& doubt : plan_.doubts) {
    if (now(doubt.worker, doubt.when)) {
      after(doubt.when.delay, [this, whom = doubt.whom] { on_lost(whom); });
    }
  }
  for (const Death& death : plan_.deaths) {
    if (now(death.worker, death.when)) {
      after(death.when.delay, [this] { network_.die(self_); });
    }
  }
}

void ViewWorker::after(double seconds, std::function<void()> act) {
  const auto wait = std::chrono::duration_cast<Duration>(Seconds(seconds));
  endpoint_.timer(endpoint_.now() + wait, alarms_.emplace_back(std::move(act)));
}

// --- What it hears ---------------------------------------------------------------------------

void ViewWorker::on_lost(Rank peer) {
  if (over()) {
    return;
  }
  disturbed_ = network_.now();
  membership_.lost(peer);
  advance();
}

void ViewWorker::on_control(Rank from, std::span<const std::byte> message) {
  const bool apart = plan_.cut && seconds(network_.now().time_since_epoch()) >= plan_.cut->at &&
                     plan_.cut->side.contains(from) != plan_.cut->side.contains(self_);
  if (over() || apart) {
    return;
  }
  if (message.size() != sizeof(Word)) {
    heard_of_view(from, message);
  } else if (!membership_.ignores(from)) {
    Word word;
    std::memcpy(&word, message.data(), sizeof word);
    if (word.epoch >= membership_.epoch()) {
      words_[{word.epoch, word.version, word.phase}].insert(from);
    }
  }
  advance();
}

void ViewWorker::heard_of_view(Rank from, std::span<const std::byte> message) {
  if (flaw_ == Flaw::LostAreHeard && membership_.ignores(from)) {
    comm::ViewMessage heard = comm::unpack_view(message, plan_.workers());
    for (comm::Standing& standing : heard.standings) {
      standing = std::min(standing, comm::Standing::Alive);
    }
    for (std::uint32_t r = 0; r < plan_.workers() && heard.epoch > membership_.epoch(); ++r) {
      if (Rank{r} != self_ && !membership_.ignores({r}) &&
          heard.standings[self_.index()] == comm::Standing::Alive) {
        membership_.heard({r}, pack(heard));  // as if somebody else had said it
      }
    }
  }
  membership_.heard(from, message);
}

// --- What its membership wants ---------------------------------------------------------------

void ViewWorker::send_view(Rank to, std::span<const std::byte> message) {
  static_assert(sizeof(Word) < 32, "told apart by their size");
  for (const Muted& muted : plan_.muted) {
    if (muted.worker == self_ && muted.after == said_) {
      disturbed_ = network_.now();
      network_.die(self_);
    }
  }
  ++said_;
  if (flaw_ == Flaw::LeaversDoNotCount) {
    comm::ViewMessage less = comm::unpack_view(message, plan_.workers());
    less.passed = 0;
    endpoint_.control(to, pack(less));
    return;
  }
  endpoint_.control(to, message);
}

Version ViewWorker::freeze() {
  cue(Cue::Freeze, ++freezes_);
  return next();
}

void ViewWorker::install(Epoch epoch, const topology::View& view, Version first) {
  if (dead()) {
    return;  // died while it spoke
  }
  const bool known = installed_.empty() ? epoch == 1 : epoch == installed_.back().epoch + 1;
  if (!known) {
    complaints_.push_back(fmt::format("worker {} skips to epoch {}", self_, epoch));
  }
  installed_.push_back({epoch, {view.live().begin(), view.live().end()}, first});
  while (next() < first) {
    const bool commits = begun_ && prepared_ && plan_.is_sync(next());
    end(!commits, commits);
  }
  begun_ = false;
  prepared_ = false;
  std::erase_if(words_, [&](const auto& entry) { return std::get<0>(entry.first) < epoch; });
  for (auto& [key, who] : words_) {
    std::erase_if(who, [&](Rank rank) { return !view.alive(rank); });
  }
  cue(Cue::Install, static_cast<int>(installed_.size()));
}

void ViewWorker::fail(const Error& why) {
  failure_ = why.what();
  disturbed_ = network_.now();
  network_.die(self_);
}

// --- Rounds ----------------------------------------------------------------------------------

Version ViewWorker::until() const {
  for (const Leaver& leaver : plan_.leavers) {
    if (leaver.worker == self_) {
      return std::min(leaver.at, plan_.versions);
    }
  }
  return plan_.versions;
}

void ViewWorker::advance() {
  while (!over() && (!membership_.frozen() || flaw_ == Flaw::EndsWhileFrozen)) {
    if (next() >= until()) {
      return finish();
    }
    if (!computed()) {
      return;
    }
    if (!begun_) {
      begin();
    }
    if (!complete(Phase::Mine)) {
      return;
    }
    if (plan_.is_sync(next()) && flaw_ != Flaw::NoClosingBarrier) {
      if (!prepared_) {
        prepared_ = true;
        say(Phase::HaveAll);
      }
      if (!complete(Phase::HaveAll)) {
        return;
      }
    }
    end(false, false);
  }
}

bool ViewWorker::computed() {
  if (computed_ > next() || plan_.pace == 0) {
    return true;
  }
  if (!computing_) {
    computing_ = true;
    const Random draw = Random(plan_.seed).stream(9).stream(self_.value);
    after(plan_.pace * draw.uniform(next()), [this, version = next()] {
      computing_ = false;
      computed_ = version + 1;
      advance();
    });
  }
  return false;
}

void ViewWorker::begin() {
  begun_ = true;
  epoch_ = membership_.epoch();
  const topology::Row row =
      schedule_.row(Step{static_cast<std::int64_t>(next())}, self_, membership_.view());
  const topology::Ranks& members = std::get<topology::Group>(row).members;
  members_.assign(members.begin(), members.end());
  say(Phase::Mine);
}

bool ViewWorker::complete(Phase phase) const {
  const auto heard = words_.find({epoch_, next(), phase});
  return heard != words_.end() && std::ranges::includes(heard->second, members_);
}

void ViewWorker::say(Phase phase) {
  Word word{};
  word.version = next();
  word.epoch = epoch_;
  word.phase = phase;
  words_[{epoch_, next(), phase}].insert(self_);
  for (const Rank member : members_) {
    if (member != self_) {
      endpoint_.control(member, std::as_bytes(std::span(&word, 1)));
    }
  }
}

void ViewWorker::end(bool is_void, bool by_install) {
  ended_.push_back({is_void, by_install, epoch_, is_void ? std::vector<Rank>{} : members_});
  begun_ = false;
  prepared_ = false;
  done_ = network_.now();
}

void ViewWorker::finish() {
  const auto mine = std::ranges::find(plan_.leavers, self_, &Leaver::worker);
  if (finishing_ || (mine == plan_.leavers.end() && !plan_.all_leave)) {
    return;
  }
  finishing_ = true;
  const Leaver leaver = mine == plan_.leavers.end() ? Leaver{.worker = self_, .dies = {}} : *mine;
  after(leaver.hesitates, [this, leaver] {
    if (over()) {
      return;
    }
    membership_.leave();
    left_ = true;
    disturbed_ = network_.now();
    if (leaver.dies) {
      after(*leaver.dies, [this] { network_.die(self_); });
    }
  });
}

}  // namespace starling::test
