// Lifelines between threads that stand for workers: who meets, who is turned away, who is missed.
#include "starling/comm/lifeline.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/random.h"
#include "starling/comm/lifeline_setup.h"
#include "starling/comm/protocol.h"

namespace starling::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kPatience = seconds(20);

Time now() {
  return Time(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

// How the meeting ended for one worker.
struct Worker {
  std::unique_ptr<Lifelines> lines;
  std::optional<ErrorCode> failed;
  std::string text;
};

class Meeting {
 public:
  explicit Meeting(std::size_t workers, bool same_node = true)
      : listeners_(workers), secrets_(workers, "the secret"), workers_(workers) {
    for (const LifelineListener& listener : listeners_) {
      peers_.push_back({.address = listener.address(), .same_node = same_node});
    }
  }

  std::uint16_t port(std::size_t rank) const { return peers_[rank].address.port; }
  void give_secret(std::size_t rank, const std::string& secret) { secrets_[rank] = secret; }

  // Connects those workers, in threads of their own.
  void meet(const std::vector<std::size_t>& who, Duration patience = kPatience) {
    std::vector<std::jthread> threads;
    for (const std::size_t rank : who) {
      threads.emplace_back([this, rank, patience] { enter(rank, patience); });
    }
  }
  void meet() {
    std::vector<std::size_t> everyone(workers_.size());
    for (std::size_t r = 0; r < everyone.size(); ++r) {
      everyone[r] = r;
    }
    meet(everyone);
  }

  Worker& operator[](std::size_t rank) { return workers_[rank]; }
  // Everybody that `rank` has lost by now, or within `patience` if it is nobody.
  std::vector<Rank> lost(std::size_t rank, int patience = 0) {
    Lifelines& lines = *workers_[rank].lines;
    pollfd waiting{.fd = lines.file(), .events = POLLIN, .revents = 0};
    poll(&waiting, 1, patience);
    std::vector<Rank> gone;
    const bool any = lines.look(now(), [&](Rank peer) { gone.push_back(peer); });
    EXPECT_EQ(any, !gone.empty());
    return gone;
  }

 private:
  void enter(std::size_t rank, Duration patience) {
    try {
      workers_[rank].lines =
          std::make_unique<Lifelines>(Rank{static_cast<std::uint32_t>(rank)}, peers_,
                                      listeners_[rank], secrets_[rank], patience);
    } catch (const Error& error) {
      workers_[rank].failed = error.code();
      workers_[rank].text = error.what();
    }
  }

  std::vector<LifelineListener> listeners_;
  std::vector<Lifelines::Peer> peers_;
  std::vector<std::string> secrets_;
  std::vector<Worker> workers_;
};

void expect_all_met(Meeting& meeting, const std::vector<std::size_t>& who) {
  for (const std::size_t rank : who) {
    EXPECT_TRUE(meeting[rank].lines) << "worker " << rank << ": " << meeting[rank].text;
  }
}

// Somebody who knows the port of a worker and nothing else.
Socket stranger(std::uint16_t port) {
  Socket file(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(file.descriptor(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  return file;
}
void say(const Socket& file, const std::string& bytes) {
  EXPECT_EQ(::send(file.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}
// What a worker of that rank says first.
std::string hello(std::uint32_t rank, const std::string& secret) {
  std::string bytes = "starlife";
  const std::uint32_t version = kProtocolVersion;
  bytes.append(reinterpret_cast<const char*>(&version), sizeof(version));
  bytes.append(reinterpret_cast<const char*>(&rank), sizeof(rank));
  bytes += secret + std::string(kLongestSecret - secret.size(), '\0');
  return bytes;
}

TEST(Lifelines, EverybodyMeetsEverybody) {
  for (const std::size_t workers : {1u, 2u, 5u, 9u}) {
    for (const bool same_node : {true, false}) {
      Meeting meeting(workers, same_node);
      meeting.meet();
      for (std::size_t r = 0; r < workers; ++r) {
        ASSERT_TRUE(meeting[r].lines) << meeting[r].text;
        EXPECT_TRUE(meeting.lost(r).empty());
      }
    }
  }
}

TEST(Lifelines, ClocksOfOneMachineAgree) {
  Meeting meeting(4);
  meeting.meet();
  expect_all_met(meeting, {0, 1, 2, 3});
  for (std::uint32_t a = 0; a < 4; ++a) {
    for (std::uint32_t b = 0; b < 4; ++b) {
      const Lifelines::Offset offset = meeting[a].lines->offset(Rank{b});
      EXPECT_LE(std::chrono::abs(offset.ahead), offset.error + std::chrono::microseconds(1))
          << a << " of " << b;
      const Lifelines::Offset back = meeting[b].lines->offset(Rank{a});
      EXPECT_EQ(offset.ahead, -back.ahead);
      EXPECT_EQ(offset.error, back.error);
    }
  }
}

TEST(Lifelines, TheEndOfOneIsSeenByAllOthersOnce) {
  for (const bool same_node : {true, false}) {
    Meeting meeting(4, same_node);
    meeting.meet();
    expect_all_met(meeting, {0, 1, 2, 3});
    meeting[2].lines.reset();
    for (const std::size_t r : {0, 1, 3}) {
      EXPECT_EQ(meeting.lost(r, 5000), std::vector<Rank>{Rank{2}}) << r;
      EXPECT_TRUE(meeting.lost(r).empty()) << "once";
    }
    meeting[0].lines.reset();
    for (const std::size_t r : {1, 3}) {
      EXPECT_EQ(meeting.lost(r, 5000), std::vector<Rank>{Rank{0}}) << r;
    }
  }
}

TEST(Lifelines, NothingIsHeardOfWhomOneDropped) {
  Meeting meeting(3);
  meeting.meet();
  expect_all_met(meeting, {0, 1, 2});
  meeting[0].lines->drop(Rank{1});
  meeting[0].lines->drop(Rank{1});
  EXPECT_EQ(meeting.lost(1, 5000), std::vector<Rank>{Rank{0}}) << "who was dropped sees it";
  meeting[1].lines.reset();
  EXPECT_EQ(meeting.lost(2, 5000), std::vector<Rank>{Rank{1}});
  EXPECT_TRUE(meeting.lost(0, 20).empty());
}

// The one told of may drop others that ended at the same moment.
TEST(Lifelines, DroppingWhileBeingTold) {
  Meeting meeting(4);
  meeting.meet();
  expect_all_met(meeting, {0, 1, 2, 3});
  meeting[1].lines.reset();
  meeting[2].lines.reset();
  meeting[3].lines.reset();
  std::vector<Rank> gone;
  meeting[0].lines->look(now(), [&](Rank peer) {
    gone.push_back(peer);
    for (std::uint32_t r = 1; r < 4; ++r) {
      meeting[0].lines->drop(Rank{r});
    }
  });
  EXPECT_EQ(gone.size(), 1u);
  EXPECT_TRUE(meeting.lost(0).empty());
}

TEST(Lifelines, BeatsGoBetweenHostsAloneAndDisturbNobody) {
  Meeting near(2, /*same_node=*/true);
  near.meet();
  expect_all_met(near, {0, 1});
  EXPECT_EQ(near[0].lines->next_look(), Time::max());
  Meeting far(2, /*same_node=*/false);
  far.meet();
  expect_all_met(far, {0, 1});
  EXPECT_EQ(far[0].lines->next_look(), Time::min()) << "the first beat is due";
  Time clock = now();
  for (int i = 0; i < 20; ++i) {
    far[0].lines->look(clock, [](Rank) { ADD_FAILURE(); });
    EXPECT_EQ(far[0].lines->next_look(), clock + seconds(1));
    EXPECT_TRUE(far.lost(1, 5000).empty()) << "a beat is no loss";
    clock += seconds(1);
  }
}

TEST(Lifelines, WhoNeverComesIsNamed) {
  Meeting meeting(3);
  meeting.meet({0}, milliseconds(100));
  EXPECT_EQ(meeting[0].failed, ErrorCode::Stalled);
  EXPECT_NE(meeting[0].text.find("1, 2"), std::string::npos) << meeting[0].text;
}

// --- Strangers -------------------------------------------------------------------------------

TEST(LifelineStrangers, AWrongSecretIsRefusedAndTheOthersMeet) {
  Meeting meeting(3);
  meeting.give_secret(2, "another secret");
  std::jthread wrong([&] { meeting.meet({2}, milliseconds(500)); });
  std::this_thread::sleep_for(milliseconds(20));
  meeting.meet({0, 1}, milliseconds(500));
  wrong.join();
  EXPECT_EQ(meeting[2].failed, ErrorCode::Lost) << meeting[2].text;
  for (const std::size_t r : {0, 1}) {
    EXPECT_EQ(meeting[r].failed, ErrorCode::Stalled) << meeting[r].text;
    EXPECT_NE(meeting[r].text.find("worker 2"), std::string::npos) << meeting[r].text;
  }
}

TEST(LifelineStrangers, OneThatClaimsToBeAWorkerDoesNotKeepTheRealOneOut) {
  Meeting meeting(3);
  std::vector<Socket> strangers;
  for (const std::uint32_t rank : {0u, 1u, 2u, 3u, 0xFFFFFFFFu}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{1}}) {
      strangers.push_back(stranger(meeting.port(at)));
      say(strangers.back(), hello(rank, "a guess"));
    }
  }
  meeting.meet();
  expect_all_met(meeting, {0, 1, 2});
}

TEST(LifelineStrangers, RubbishAndSilenceDisturbNobody) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Meeting meeting(4);
    RandomSequence draw{Random(seed)};
    std::vector<Socket> strangers;
    for (int i = 0; i < 20; ++i) {
      strangers.push_back(stranger(meeting.port(draw.below(4))));
      std::string rubbish(draw.below(3) * draw.below(400), '\0');
      for (char& c : rubbish) {
        c = static_cast<char>(draw.bits());
      }
      // Some begin like a worker, and stop in the middle.
      say(strangers.back(), draw.below(2) == 0 ? hello(1, "").substr(0, 10) : rubbish);
      if (draw.below(2) == 0) {
        strangers.pop_back();
      }
    }
    meeting.meet();
    expect_all_met(meeting, {0, 1, 2, 3});
  }
}

TEST(LifelineStrangers, AWorkerThatDiesInTheMiddleIsNamed) {
  Meeting meeting(2);
  {
    Socket dying = stranger(meeting.port(0));
    say(dying, hello(1, "the secret"));
    std::jthread other([&] { meeting.meet({0}); });
    std::this_thread::sleep_for(milliseconds(20));
    dying = Socket();
  }
  EXPECT_EQ(meeting[0].failed, ErrorCode::Lost);
  EXPECT_NE(meeting[0].text.find("worker 1 ended"), std::string::npos) << meeting[0].text;
}

TEST(LifelineStrangers, WhoIsGoneBeforeTheMeetingIsNamed) {
  LifelineListener own;
  std::vector<Lifelines::Peer> peers(2);
  {
    const LifelineListener gone;
    peers[0] = {.address = gone.address(), .same_node = true};
  }
  try {
    const Lifelines lines(Rank{1}, peers, own, "the secret", kPatience);
    ADD_FAILURE() << "met somebody";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Lost);
    EXPECT_NE(std::string(error.what()).find("worker 0"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace starling::comm
