// The rounds of one worker: versions in order, each exactly once, ended or void. It runs on the
// engine without the application: what is late is left behind, what is lost is agreed on.
//
//   wait until the trigger lets version v start ─▶ contribute the newest ─▶ exchange ─▶ outcome
//        ▲                                             │ a worker is lost: everyone stops,
//        └──────────── next version ◀──────────────────┘ agrees (view.h), goes on from version V
//
// A sync (every tau-th version: everyone in person) ends with a closing barrier: a worker that has
// the sum but has not passed the barrier is *prepared*, and takes the result if the new view begins
// above it: if one has it, all have it.
//
// Threads: the engine's alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "starling/base/running.h"
#include "starling/base/task.h"
#include "starling/comm/alarm.h"
#include "starling/comm/engine.h"
#include "starling/comm/round.h"
#include "starling/comm/signal.h"
#include "starling/comm/trigger.h"
#include "starling/comm/view.h"
#include "starling/topology/schedule.h"

namespace starling::comm {

struct RoundsOptions {
  TriggerOptions trigger;
  // Every tau-th version: everyone in person.
  std::optional<std::uint32_t> sync_period;
  // Where the parts of the model end, in bytes, each an exchange of its own; none: the whole at
  // once.
  std::vector<std::size_t> parts{};
  // Contributions travel as bf16, in groups (all_reduce.h).
  bool bf16 = false;
  // Push-sum: shares and weights travel along directed edges.
  bool push = false;
  // After this many versions everyone meets once more, without payload (end_together()): so nobody
  // leaves while others still need it. The same on all workers. None: who has finished leaves.
  std::optional<Version> last;
  // The first version here; earlier ones were another run's, which this one continues. The same on
  // all workers.
  Version first = 0;
  // Which of several rounds of this engine, one after the other; the same on all workers.
  std::uint64_t series = 0;
  // Told when each part of a version was under way here.
  using Exchanged = std::function<void(std::size_t part, Time begin, Time end)>;
  Exchanged exchanged{};
};

class Rounds final : private Engine::Guest, private Membership::Host, private Trigger::Host {
 public:
  // `schedule` and `contribution` outlive this. `observer` is told every outcome, also void ones,
  // in order of versions.
  using Observer = std::function<void(const Outcome&)>;
  Rounds(Engine& engine, const topology::Schedule& schedule, Contribution& contribution,
         RoundsOptions options, Observer observer = {});
  // Requires: leave() or fail has ended run().
  ~Rounds();

  // Runs versions until leave(), or until it fails: then waiting applications get the error. Run
  // this beside the application.
  Task<void> run();

  // The application has handed over its part of version `v`.
  void arrived(Version v);
  // Until version `v` has ended here. Throws what ended run().
  Task<void> ended(Version v);
  // Until `there()`, which is looked at whenever a version or a part has ended. Throws what ended
  // run().
  Task<void> until(std::function<bool()> there);
  // Until everyone has ended the last version. Requires: options.last.
  Task<void> end_together();
  // Something about the contribution has changed.
  void look() { changed_.raise(); }
  // This worker takes part no more; run() ends when nothing is under way.
  void leave();

  Version next() const { return next_; }
  bool is_sync(Version v) const {
    return options_.sync_period && (v + 1) % *options_.sync_period == 0;
  }
  const topology::View& view() const override { return view_; }
  Epoch epoch() const { return membership_.epoch(); }
  Engine& engine() { return engine_; }
  std::uint64_t void_rounds() const { return void_rounds_; }
  std::uint64_t notes_sent() const { return notes_sent_; }

 private:
  // A row of the schedule with what is read off it more than once.
  struct Known {
    topology::Row row;
    std::vector<Rank> members;
  };
  // What members tell each other about their contributions.
  struct Label {
    std::int64_t step = 0;
    std::int64_t lateness = 0;
  };

  // One version.
  Task<void> one_version();
  Task<void> exchange(Known known, Contribution::Pass pass);
  Task<void> in_group(std::span<const Rank> members, Contribution::Pass pass);
  Task<void> sum_parts(std::span<const Rank> members, Contribution::Pass pass);
  Task<void> with_neighbours(const topology::Neighbours& row, Contribution::Pass pass);
  Task<void> mix_parts(const topology::Neighbours& row, Contribution::Pass pass);
  void note_exchange(std::size_t part, Time begun);
  std::vector<std::size_t> parts_of(const Contribution::Pass& pass) const;
  Task<void> gather_labels(std::span<const Rank> members, Step own);
  Task<void> hear_labels(Step own);
  void prepare(const Known& known, const Contribution::Pass& pass);
  void commit();
  void mark_ended();
  Task<void> finish(bool closing);
  void skip_to(Version first);
  bool may_start();
  bool is_closing(Version v) const { return options_.last == v; }
  const Known& known(Version v);
  std::uint64_t id(std::uint64_t part) const;
  void throw_if_ended() const;

  // Engine::Guest
  void on_message(Rank from, std::uint32_t kind, std::span<const std::byte> message) override;
  void on_lost(Rank peer) override;
  bool needs(Rank) const override { return false; }
  bool is_over(std::uint64_t id) const override;
  void on_close() override;
  void hear(Rank from, const Note& note);

  // Membership::Host
  void send_view(Rank to, std::span<const std::byte> message) override;
  Version freeze() override;
  void install(Epoch epoch, const topology::View& view, Version first) override;
  void fail(const Error& why) override;

  // Trigger::Host
  Rank rank() const override { return engine_.rank(); }
  Time now() const override { return engine_.now(); }
  std::span<const Rank> members(Version v) override { return known(v).members; }
  bool is_closed(Version v) override {
    return std::holds_alternative<topology::Group>(known(v).row);
  }
  void send(Rank to, Note note) override;
  void wake() override { changed_.raise(); }
  void wake_at(Time when) override { alarm_.at(when); }

  Engine& engine_;
  const topology::Schedule& schedule_;
  Contribution& contribution_;
  RoundsOptions options_;
  Observer observer_;
  topology::View view_;  // as the schedule sees it
  Membership membership_;
  Signal changed_;     // for run(): look whether the next version may start
  Signal progressed_;  // for applications
  Alarm alarm_;
  std::unique_ptr<Trigger> trigger_;

  Version next_ = 0;      // the first that has not ended (its exchange, not its follow-up)
  Version finished_ = 0;  // what applications may see
  Version synced_ = 0;    // after the last sync that ended
  Version first_ = 0;     // the present view holds from here
  Version least_ = 0;     // what lies below cannot begin here again
  bool under_way_ = false;
  bool interrupted_ = false;
  bool prepared_ = false;
  bool committed_ = false;
  bool leaving_ = false;
  bool closing_ = false;  // the application has finished
  bool entered_ = false;  // the trigger knows that next_ is next
  bool over_ = false;
  std::exception_ptr failure_;
  Outcome outcome_;
  std::optional<Running<void>> exchange_;
  std::map<Version, Known> known_;
  std::vector<std::pair<Rank, Note>> early_;         // of newer epochs
  std::map<std::pair<Version, Rank>, Step> labels_;  // of neighbours
  std::uint64_t void_rounds_ = 0;
  std::uint64_t notes_sent_ = 0;
};

}  // namespace starling::comm
