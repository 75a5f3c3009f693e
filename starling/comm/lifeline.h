// How a worker knows that another one is gone: one TCP connection between every two workers that
// carries nothing but a beat.
//
// A process that ends, however, has its connections closed by its kernel: the others read the end
// at once. A host that vanishes says nothing; its kernel stops acknowledging the beats. A process
// that is only stopped or busy is neither: its kernel still acknowledges. So late and lost are told
// apart without asking the process. The deadline is learned from the silences that were measured.
//
// When two workers are connected each has checked that the other knows the secret of the job; the
// difference of their clocks is measured on the way.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "starling/base/time.h"
#include "starling/base/units.h"

namespace starling::comm {

// Where a worker listens for lifelines.
struct LifelineAddress {
  std::uint16_t port = 0;
  std::vector<std::string> hosts;  // numeric addresses, likeliest first
};

// The socket that listens while the workers meet.
class LifelineListener {
 public:
  LifelineListener();
  ~LifelineListener();
  LifelineListener(const LifelineListener&) = delete;
  LifelineListener& operator=(const LifelineListener&) = delete;
  LifelineAddress address() const;
  int file() const { return file_; }

 private:
  int file_ = -1;
  std::uint16_t port_ = 0;
};

struct LifelineOptions {
  Duration beat = std::chrono::seconds(1);
  // A vanished host is given up after this much silence of its kernel, or ten times the longest
  // that was ever followed by a sign of life, whichever is longer.
  Duration least_deadline = std::chrono::seconds(3);
};

class Lifelines {
 public:
  // What to know of a peer.
  struct Peer {
    LifelineAddress address;
    bool same_node = false;
  };
  // How much the clock of another worker is ahead of ours.
  struct Offset {
    Duration ahead{0};
    Duration error{0};
  };

  // Connects to everyone: to lower ranks actively, to higher ones by accepting. Throws
  // Error{Stalled} naming those who did not come within `patience`, Error{Lost} naming one who
  // ended meanwhile.
  Lifelines(Rank self, std::span<const Peer> peers, LifelineListener& listener,
            const std::string& secret, Duration patience, LifelineOptions options = {});
  ~Lifelines();
  Lifelines(const Lifelines&) = delete;
  Lifelines& operator=(const Lifelines&) = delete;

  // Readable when there is something to look at.
  int file() const { return epoll_; }
  // Reports every peer that is gone, once; sends the beats that are due. True if one was lost.
  bool look(Time now, const std::function<void(Rank)>& lost);
  // When look() wants to be called at the latest.
  Time next_look() const { return next_beat_; }
  Offset offset(Rank peer) const { return lines_[peer.index()].offset; }
  void drop(Rank peer);

 private:
  struct Line {
    int file = -1;
    bool remote = false;
    Duration longest{0};  // silence that ended with a sign of life
    Duration silent{0};   // at the last look
    Offset offset;
  };

  void beat(const std::function<void(Rank)>& lost, bool& any);
  bool vanished(Line& line) const;

  LifelineOptions options_;
  int epoll_ = -1;
  std::vector<Line> lines_;
  Time next_beat_ = Time::max();
};

}  // namespace starling::comm
