#include "starling/workload/meeting.h"

#include <algorithm>
#include <array>

#include "starling/base/error.h"
#include "starling/comm/broadcast.h"
#include "starling/comm/gather.h"

namespace starling::workload {
namespace {

using comm::Engine;

// Ids of their own, beside those of the trainer: bit 62, number of the meeting, leader, follower,
// phase.
constexpr std::uint64_t kMeetings = std::uint64_t{1} << 62;
constexpr unsigned kFollowerShift = 2;
constexpr unsigned kLeaderShift = 14;
constexpr unsigned kMeetingShift = 26;

enum Phase : std::uint64_t { kRecords, kEnd, kFirst };

// The two records of leader and follower become the same on both.
Task<void> exchange(Engine& engine, std::uint64_t id, std::array<Rank, 2> pair,
                    std::span<double> both) {
  co_await comm::gather(engine, {.id = id, .members = pair}, std::as_writable_bytes(both));
}

// False if the other is lost.
Task<bool> try_exchange(Engine& engine, std::uint64_t id, std::array<Rank, 2> pair,
                        std::span<double> both) {
  try {
    co_await exchange(engine, id, pair, both);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::Lost) {
      throw;
    }
    co_return false;
  }
  co_return true;
}

}  // namespace

std::uint64_t Meetings::id(std::uint64_t phase, Rank leader, Rank follower) const {
  return kMeetings | meeting_ << kMeetingShift | std::uint64_t{leader.value} << kLeaderShift |
         std::uint64_t{follower.value} << kFollowerShift | phase;
}

Rank Meetings::lowest_living() {
  return workers_.run([](Engine& engine) -> Task<Rank> {
    std::uint32_t rank = 0;
    while (engine.lost(Rank{rank})) {
      ++rank;
    }
    co_return Rank{rank};
  });
}

Meetings::Answer Meetings::meet(std::span<const double> own, std::size_t length,
                                const std::function<Answer(const Records&)>& lead) {
  ++meeting_;
  for (;;) {
    const Rank leader = lowest_living();
    if (leader == workers_.rank()) {
      return lead_others(own, length, lead);
    }
    try {
      return follow(leader, own, length);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::Lost) {
        throw;
      }
    }
  }
}

Meetings::Answer Meetings::lead_others(std::span<const double> own, std::size_t length,
                                       const std::function<Answer(const Records&)>& lead) {
  const Rank self = workers_.rank();
  Records records(workers_.size());
  records[self.index()].emplace(own.begin(), own.end());
  const auto with_each = [&](std::uint64_t phase, std::span<const double> mine, bool keep) {
    workers_.run([&, phase, mine, keep](Engine& engine) -> Task<void> {
      for (std::uint32_t r = self.value + 1; r < workers_.size(); ++r) {
        if (engine.lost(Rank{r})) {
          continue;
        }
        std::vector<double> both(2 * mine.size());
        std::copy(mine.begin(), mine.end(), both.begin());
        const std::array<Rank, 2> pair = {self, Rank{r}};
        const bool heard = co_await try_exchange(engine, id(phase, self, Rank{r}), pair, both);
        if (heard && keep) {
          records[r].emplace(both.begin() + static_cast<std::ptrdiff_t>(mine.size()), both.end());
        }
      }
    });
  };
  with_each(kRecords, own, true);
  Answer answer;
  std::exception_ptr failure;
  try {
    answer = lead(records);
    check(answer.size() == length, "an answer of {} numbers, not {}", answer.size(), length);
  } catch (...) {
    failure = std::current_exception();
  }
  std::vector<double> last(length + 1);
  last[0] = failure ? 1 : 0;
  std::copy(answer.begin(), answer.end(), last.begin() + 1);
  with_each(kEnd, last, false);
  if (failure) {
    std::rethrow_exception(failure);
  }
  return answer;
}

Meetings::Answer Meetings::follow(Rank leader, std::span<const double> own, std::size_t length) {
  const std::array<Rank, 2> pair = {leader, workers_.rank()};
  std::vector<double> records(2 * own.size());
  std::copy(own.begin(), own.end(), records.begin() + static_cast<std::ptrdiff_t>(own.size()));
  std::vector<double> last(2 * (length + 1));
  workers_.run([&](Engine& engine) -> Task<void> {
    co_await exchange(engine, id(kRecords, leader, pair[1]), pair, records);
    co_await exchange(engine, id(kEnd, leader, pair[1]), pair, last);
  });
  if (last[0] != 0) {
    throw AlreadyTold();
  }
  return {last.begin() + 1, last.begin() + 1 + static_cast<std::ptrdiff_t>(length)};
}

std::string Meetings::told_by_first(const std::function<std::string()>& make) {
  ++meeting_;
  constexpr std::size_t kMost = 4096;
  std::vector<char> mine(kMost, '\0');
  std::exception_ptr failure;
  if (workers_.rank() == Rank{0}) {
    try {
      const std::string text = make();
      require(text.size() < kMost, "too long: {}", text);
      mine[0] = 1;
      std::copy(text.begin(), text.end(), mine.begin() + 1);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  std::vector<char> told(kMost, '\0');
  const std::vector<Rank> everyone = workers_.everyone();
  workers_.run([&](Engine& engine) -> Task<void> {
    const comm::ConstBuffer in = {.blob = {reinterpret_cast<const std::byte*>(mine.data()), kMost}};
    const comm::Buffer out = {.blob = {reinterpret_cast<std::byte*>(told.data()), kMost}};
    co_await comm::broadcast(engine, {.id = id(kFirst, Rank{0}, Rank{0}), .members = everyone},
                             Rank{0}, in, out);
  });
  if (failure) {
    std::rethrow_exception(failure);
  }
  if (told[0] == 0) {
    throw AlreadyTold();
  }
  return {told.data() + 1};
}

}  // namespace starling::workload
