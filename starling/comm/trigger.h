// When a round starts. One trigger per worker; it talks to the triggers of the other workers by
// small notes, and tells its rounds whether a version may start here.
//
//   in person   when the own application has arrived                     (rows that wait for all)
//   activation  when anybody, a drawn initiator, or a quorum has arrived (trigger_activation.cc)
//   need        when a member will soon need the result                  (trigger_need.cc)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "starling/base/random.h"
#include "starling/base/time.h"
#include "starling/base/units.h"
#include "starling/comm/view.h"

namespace starling::comm {

struct TriggerOptions {
  enum class When : std::uint8_t {
    All,        // everyone is waited for
    First,      // any worker starts the groups of all, by a flood
    OneSide,    // any member starts its group
    Initiator,  // a worker drawn for each version, the same draw everywhere
    Quorum,     // `quorum` workers have arrived; the drawn worker counts
    Need,       // Starling's own
  };
  When when = When::All;
  std::uint32_t quorum = 1;
  // First: how long the first arrival waits for others.
  Duration grace{0};
  // First: grace is learnt from measured lateness; `grace` is then the most it can be.
  bool learn_grace = false;
  // Need: no version starts before all members have handed over their update of v - age_bound.
  std::int64_t age_bound = 9;
  std::uint64_t seed = 0;
};

// What triggers tell each other.
struct Note {
  enum class Kind : std::uint32_t { Activate, Arrive, Ready, Go, Label };
  Version version = 0;
  Epoch epoch = 0;
  Kind kind = Kind::Activate;
  Rank origin{};                // of an activation: who started it
  std::uint32_t hops = 0;       // and how far it has come
  std::int64_t handed = 0;      // updates handed over; of a label: the step contributed
  std::int64_t until_need = 0;  // nanoseconds until the sender needs the result
};

class Trigger {
 public:
  // What a trigger sees of its worker.
  class Host {
   public:
    virtual Rank rank() const = 0;
    virtual Time now() const = 0;
    virtual const topology::View& view() const = 0;
    // Those who average with this worker in version `v`, itself included.
    virtual std::span<const Rank> members(Version v) = 0;
    // Whether all of them have the same members.
    virtual bool is_closed(Version v) = 0;
    virtual void send(Rank to, Note note) = 0;
    // Look again now, or at `when`.
    virtual void wake() = 0;
    virtual void wake_at(Time when) = 0;

   protected:
    ~Host() = default;
  };

  virtual ~Trigger() = default;
  // The application has handed over its part of version `v` (and of those before).
  virtual void arrived(Version /*v*/) {}
  // The application waits for version `v`.
  virtual void waits(Version /*v*/) {}
  // Version `v` is next here, and nothing is under way; also after a new view.
  virtual void entered(Version /*v*/) {}
  virtual void heard(Rank /*from*/, const Note& /*note*/) {}
  // A new view holds.
  virtual void installed() {}
  // How late an arrival was, as members tell each other.
  virtual Duration lateness() const { return Duration(0); }
  virtual void learnt(Duration /*lateness*/) {}
  // Requires: `v` is next, nothing is under way. `arrived`: the application has handed it over.
  virtual bool may_start(Version v, bool arrived) = 0;

  struct Activation {
    Rank by{};
    Time at{};
    std::uint32_t hops = 0;
  };
  // Of the version that may start.
  virtual Activation activation(Version /*v*/) const = 0;
};

// As users write it: all, first, first+SECONDS (grace), first+learnt, majority (a drawn worker),
// quorum:K, need. Throws Error{Input}, one line, that begins with `what` and says what there is, or
// that there are fewer workers than a quorum.
TriggerOptions parse_trigger(std::string_view what, std::string_view text, std::size_t workers);

std::unique_ptr<Trigger> make_trigger(const TriggerOptions& options, Trigger::Host& host);
std::unique_ptr<Trigger> make_activation(const TriggerOptions& options, Trigger::Host& host);
std::unique_ptr<Trigger> make_need(const TriggerOptions& options, Trigger::Host& host);

}  // namespace starling::comm
