// A worker that runs rounds without payload on the virtual network: what an engine makes of views,
// as far as they go. Version after version it tells the members of its group "here is mine" and
// ends the version when it has heard that from all of them, in this epoch; in a sync all workers
// then say "I have all", and it ends when it has heard that from all. Writes down how each version
// ended.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "starling/comm/endpoint.h"
#include "starling/comm/view.h"
#include "starling/sim/network.h"
#include "starling/topology/schedule.h"
#include "tests/comm/view_plan.h"

namespace starling::test {

// A rule that is not kept, to see that the trial finds it.
enum class Flaw : std::uint8_t {
  None,
  NoClosingBarrier,   // a sync ends as soon as all contributions are there
  LostAreHeard,       // the newer view of a worker announced lost is installed
  EndsWhileFrozen,    // versions go on ending after the first State
  LeaversDoNotCount,  // what those who left have ended is not asked for
};

struct Ended {
  bool is_void = false;
  bool by_install = false;  // a prepared sync, committed by the first version of a view
  comm::Epoch epoch = 0;
  std::vector<Rank> members;
};

struct Installed {
  comm::Epoch epoch = 0;
  std::vector<Rank> live;
  comm::Version first = 0;
};

class ViewWorker final : public comm::Endpoint::Listener, private comm::Membership::Host {
 public:
  ViewWorker(sim::Network& network, const topology::Schedule& schedule, const ViewPlan& plan,
             Rank self, Flaw flaw);

  void start();

  Rank rank() const { return self_; }
  const comm::Membership& membership() const { return membership_; }
  comm::Version next() const { return ended_.size(); }
  const std::vector<Ended>& ended() const { return ended_; }
  const std::vector<Installed>& installed() const { return installed_; }
  const std::string& failure() const { return failure_; }
  bool left() const { return left_; }
  bool dead() const { return network_.dead(self_); }
  // When something last went wrong here, or somebody left; and when the last version ended.
  SimTime disturbed() const { return disturbed_; }
  SimTime done() const { return done_; }
  const std::vector<std::string>& complaints() const { return complaints_; }

  void on_control(Rank from, std::span<const std::byte> message) override;
  void on_lost(Rank peer) override;
  bool needs(Rank) const override { return false; }

 private:
  enum class Phase : std::uint8_t { Mine, HaveAll };
  struct Word {
    comm::Version version = 0;
    comm::Epoch epoch = 0;
    Phase phase = Phase::Mine;
  };
  class Alarm final : public comm::Completion {
   public:
    explicit Alarm(std::function<void()> act) : act_(std::move(act)) {}
    void finish(comm::Finish how, std::size_t) override {
      if (how == comm::Finish::Done) {
        act_();
      }
    }

   private:
    std::function<void()> act_;
  };

  void send_view(Rank to, std::span<const std::byte> message) override;
  comm::Version freeze() override;
  void install(comm::Epoch epoch, const topology::View& view, comm::Version first) override;
  void fail(const Error& why) override;

  void cue(Cue cue, int nth);
  void after(double seconds, std::function<void()> act);
  void heard_of_view(Rank from, std::span<const std::byte> message);
  bool over() const { return left_ || !failure_.empty() || dead(); }
  comm::Version until() const;  // where this worker has finished
  void advance();
  bool computed();
  void begin();
  bool complete(Phase phase) const;
  void say(Phase phase);
  void end(bool is_void, bool by_install);
  void finish();

  sim::Network& network_;
  const topology::Schedule& schedule_;
  const ViewPlan& plan_;
  Rank self_;
  Flaw flaw_;
  comm::Endpoint& endpoint_;
  comm::Membership membership_;
  std::deque<Alarm> alarms_;

  // The version under way.
  bool begun_ = false;
  bool prepared_ = false;
  comm::Epoch epoch_ = 0;  // in which it has begun
  std::vector<Rank> members_;
  comm::Version computed_ = 0;
  bool computing_ = false;
  std::map<std::tuple<comm::Epoch, comm::Version, Phase>, std::set<Rank>> words_;

  std::vector<Ended> ended_;
  std::vector<Installed> installed_;
  std::vector<std::string> complaints_;
  std::string failure_;
  std::uint64_t said_ = 0;  // messages about views
  int freezes_ = 0;
  bool finishing_ = false;
  bool left_ = false;
  SimTime disturbed_{};
  SimTime done_{};
};

}  // namespace starling::test
