// The pool: memory for the own use, and leases of it for others, in this process and in another.
#include "starling/comm/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/random.h"

namespace starling::comm {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kNames = 2048;

void write(Blob to, std::string_view text) { std::memcpy(to.data, text.data(), text.size()); }
std::string_view text_of(ConstBlob from) {
  return {reinterpret_cast<const char*>(from.data), from.size};
}

PoolView view_of(const Pool& pool, std::size_t seat) {
  auto view = PoolView::open(pool.address(), seat);
  check(view.has_value(), "the own pool cannot be opened");
  return std::move(*view);
}

// How `run` ends in a child process: 0 if it returned true.
template <typename Run>
int in_child(Run run) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(run() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void expect_no_room(Pool& pool, std::size_t bytes) {
  try {
    pool.share(bytes);
    ADD_FAILURE() << bytes << " bytes were given";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Input) << error.what();
  }
}

// --- Memory ----------------------------------------------------------------------------------

TEST(PoolMemory, SmallPiecesBeginOnLinesAndLargeOnesOnPages) {
  Pool pool(1 << 20);
  for (const std::size_t bytes : {1u, 63u, 64u, 65u, 1000u, 4095u}) {
    const Blob blob = pool.share(bytes);
    EXPECT_EQ(blob.size, bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blob.data) % 64, 0u) << bytes;
    EXPECT_TRUE(pool.contains(blob));
  }
  for (const std::size_t bytes : {4096u, 4097u, 100'000u}) {
    const Blob blob = pool.share(bytes);
    EXPECT_EQ(blob.size, bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blob.data) % kPage, 0u) << bytes;
  }
}

TEST(PoolMemory, IsUsedAgainAndGrowsTogether) {
  Pool pool(16 * kPage);
  const Blob whole = pool.share(16 * kPage);
  expect_no_room(pool, 1);
  pool.unshare(whole);
  // Given back in every order, what was taken page by page is one piece again.
  std::vector<std::size_t> order = {0, 1, 2, 3};
  do {
    std::vector<Blob> quarters;
    for (int i = 0; i < 4; ++i) {
      quarters.push_back(pool.share(4 * kPage));
    }
    expect_no_room(pool, 1);
    for (const std::size_t i : order) {
      pool.unshare(quarters[i]);
    }
    const Blob again = pool.share(16 * kPage);
    EXPECT_EQ(again.data, whole.data);
    pool.unshare(again);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(PoolMemory, WhereThereIsNoRoomIsInput) {
  Pool pool(4 * kPage);
  expect_no_room(pool, 4 * kPage + 1);
  const Blob most = pool.share(3 * kPage);
  expect_no_room(pool, kPage + 1);
  pool.share(kPage);
  expect_no_room(pool, 1);
  pool.unshare(most);
  EXPECT_NO_THROW(pool.share(3 * kPage));
}

// Sizes that wrap around when they are rounded up or added to an offset.
TEST(PoolMemory, SizesNearTheLargestNumberAreNoRoom) {
  Pool pool(4 * kPage);
  for (std::size_t less = 0; less < 64 * kPage; less += kPage / 2) {
    expect_no_room(pool, std::numeric_limits<std::size_t>::max() - less);
  }
}

TEST(PoolMemory, WhatWasNotTakenCannotBeGivenBack) {
  Pool pool(4 * kPage);
  const Blob blob = pool.share(100);
  EXPECT_THROW(pool.unshare({blob.data + 64, 36}), Error);
  pool.unshare(blob);
  EXPECT_THROW(pool.unshare(blob), Error) << "twice";
}

TEST(PoolMemory, OnlyItsOwnIsContained) {
  Pool pool(4 * kPage);
  Pool other(4 * kPage);
  std::vector<std::byte> heap(100);
  const Blob blob = pool.share(4 * kPage);
  EXPECT_TRUE(pool.contains(blob.slice(100, 200)));
  EXPECT_FALSE(pool.contains({blob.data, blob.size + 1})) << "beyond its end";
  EXPECT_FALSE(other.contains(blob));
  EXPECT_FALSE(pool.contains({heap.data(), heap.size()}));
}

// Takes and gives back at random; every piece keeps the number that was written all over it.
void take_and_give(Pool& pool, std::uint64_t seed, int rounds) {
  struct Piece {
    Blob blob;
    std::byte mark;
  };
  RandomSequence draw{Random(seed)};
  std::vector<Piece> pieces;
  for (int i = 0; i < rounds; ++i) {
    if (draw.below(5) < 3) {
      const std::size_t bytes = 1 + draw.below(draw.below(4) == 0 ? 20'000 : 500);
      const Piece piece{pool.share(bytes), static_cast<std::byte>(draw.bits())};
      std::fill_n(piece.blob.data, bytes, piece.mark);
      pieces.push_back(piece);
    } else if (!pieces.empty()) {
      const std::size_t at = draw.below(pieces.size());
      const Piece piece = pieces[at];
      ASSERT_TRUE(std::all_of(piece.blob.data, piece.blob.data + piece.blob.size,
                              [&](std::byte b) { return b == piece.mark; }))
          << "seed " << seed << ": written by another";
      pool.unshare(piece.blob);
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  for (const Piece& piece : pieces) {
    pool.unshare(piece.blob);
  }
}

TEST(PoolMemory, PiecesNeverOverlapWhateverIsTakenAndGivenBack) {
  constexpr std::size_t kBytes = 8 << 20;
  Pool pool(kBytes);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    take_and_give(pool, seed, 500);
    pool.unshare(pool.share(kBytes));  // nothing was lost
  }
}

TEST(PoolMemory, IsTakenAndGivenBackByManyThreads) {
  constexpr std::size_t kBytes = 32 << 20;
  Pool pool(kBytes);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&pool, t] { take_and_give(pool, 100 + t, 1000); });
    }
  }
  pool.unshare(pool.share(kBytes));
}

// --- Leases ----------------------------------------------------------------------------------

TEST(PoolLease, SeesTheOwnersBytesBothWays) {
  Pool pool(kPage);
  PoolView view = view_of(pool, 3);
  const Blob memory = pool.share(16);
  write(memory, "from the owner!!");
  const std::uint64_t name = pool.publish(memory.slice(4, 12)).value();
  const auto lease = view.lease(name);
  ASSERT_TRUE(lease);
  ASSERT_EQ(lease->size, 8u);
  EXPECT_NE(lease->data, memory.data + 4) << "another mapping";
  EXPECT_EQ(text_of(*lease), " the own");
  write(*lease, "its hold");
  EXPECT_EQ(text_of(memory), "fromits holder!!");
}

TEST(PoolLease, CrossesProcesses) {
  Pool pool(kPage);
  const Blob memory = pool.share(16);
  write(memory, "from the owner!!");
  const std::uint64_t name = pool.publish(memory).value();
  const PoolAddress address = pool.address();
  EXPECT_EQ(in_child([&] {
              auto view = PoolView::open(address, 7);
              const auto lease = view ? view->lease(name) : std::nullopt;
              if (!lease || text_of(*lease) != "from the owner!!") {
                return false;
              }
              write(*lease, "from the child!!");
              return true;  // ends while it holds the lease
            }),
            0);
  EXPECT_EQ(text_of(memory), "from the child!!");
  EXPECT_EQ(pool.leases(name), 1u) << "the dead hold until they are known to be gone";
  pool.leave(7);
  EXPECT_EQ(pool.leases(name), 0u);
  pool.withdraw(name);
  EXPECT_EQ(in_child([&] {
              auto view = PoolView::open(address, 7);
              return view && !view->lease(name);
            }),
            0);
}

TEST(PoolLease, IsRefusedOnceTheNameIsWithdrawn) {
  Pool pool(kPage);
  PoolView view = view_of(pool, 0);
  const std::uint64_t name = pool.publish(pool.share(16)).value();
  EXPECT_FALSE(view.lease(name + 1)) << "never named";
  EXPECT_FALSE(view.lease(0));
  pool.withdraw(name);
  EXPECT_FALSE(view.lease(name));
  EXPECT_EQ(pool.leases(name), 0u);
  EXPECT_THROW(pool.withdraw(name), Error) << "twice";
}

TEST(PoolLease, IsCountedUntilItIsReleased) {
  Pool pool(kPage);
  const std::uint64_t name = pool.publish(pool.share(16)).value();
  std::vector<PoolView> views;
  for (const std::size_t seat :
       {std::size_t{0}, std::size_t{63}, std::size_t{64}, std::size_t{130}, kMostSeats - 1}) {
    views.push_back(view_of(pool, seat));
    ASSERT_TRUE(views.back().lease(name));
    EXPECT_EQ(pool.leases(name), views.size());
  }
  pool.withdraw(name);
  EXPECT_EQ(pool.leases(name), 5u) << "who held it still does";
  for (std::size_t i = 0; i < 5; ++i) {
    views[i].release(name);
    EXPECT_EQ(pool.leases(name), 4 - i);
  }
}

TEST(PoolLease, LeaveEndsThoseOfOneSeatAlone) {
  Pool pool(kPage);
  PoolView gone = view_of(pool, 65);
  PoolView stays = view_of(pool, 1);
  std::vector<std::uint64_t> names;
  for (int i = 0; i < 10; ++i) {
    names.push_back(pool.publish(pool.share(16)).value());
    ASSERT_TRUE(gone.lease(names.back()));
    ASSERT_TRUE(stays.lease(names.back()));
  }
  pool.leave(65);
  for (const std::uint64_t name : names) {
    EXPECT_EQ(pool.leases(name), 1u);
    EXPECT_FALSE(gone.release(name)) << "it is told that its lease had ended";
    EXPECT_TRUE(stays.release(name));
  }
}

TEST(PoolLease, OnlyPoolMemoryHasNames) {
  Pool pool(kPage);
  std::vector<std::byte> heap(16);
  EXPECT_FALSE(pool.publish({heap.data(), heap.size()}));
}

TEST(PoolLease, NamesAreNeverUsedTwice) {
  Pool pool(kPage);
  PoolView view = view_of(pool, 0);
  const Blob memory = pool.share(16);
  std::set<std::uint64_t> seen;
  for (std::size_t i = 0; i < 3 * kNames; ++i) {
    const std::uint64_t name = pool.publish(memory).value();
    ASSERT_TRUE(seen.insert(name).second) << name;
    ASSERT_TRUE(view.lease(name));
    view.release(name);
    pool.withdraw(name);
  }
  for (const std::uint64_t name : seen) {
    ASSERT_FALSE(view.lease(name));
  }
}

TEST(PoolLease, ThereAre2048NamesAtOnce) {
  Pool pool(kPage);
  const Blob memory = pool.share(16);
  std::vector<std::uint64_t> names;
  for (std::size_t i = 0; i < kNames; ++i) {
    const auto name = pool.publish(memory);
    ASSERT_TRUE(name) << i;
    names.push_back(*name);
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(pool.publish(memory));
  }
  for (const std::uint64_t name : names) {
    pool.withdraw(name);
  }
  EXPECT_TRUE(pool.publish(memory));
}

// A name that is withdrawn but held does not make room for another, so no holder is counted twice.
TEST(PoolLease, AHeldNameKeepsItsPlace) {
  Pool pool(kPage);
  PoolView view = view_of(pool, 0);
  const Blob memory = pool.share(16);
  const std::uint64_t held = pool.publish(memory).value();
  ASSERT_TRUE(view.lease(held));
  pool.withdraw(held);
  for (std::size_t i = 0; i < 2 * kNames; ++i) {
    const std::uint64_t name = pool.publish(memory).value();
    ASSERT_NE(name % kNames, held % kNames);
    pool.withdraw(name);
  }
  EXPECT_EQ(pool.leases(held), 1u);
}

// Names lead to places that others had before. To ask for one that is gone must not end the lease
// of the one that is there now.
TEST(PoolLease, ARefusedLeaseEndsNoOther) {
  Pool pool(kPage);
  PoolView view = view_of(pool, 0);
  const Blob memory = pool.share(16);
  const std::uint64_t old = pool.publish(memory).value();
  pool.withdraw(old);
  std::uint64_t name = pool.publish(memory).value();
  while (name % kNames != old % kNames) {
    pool.withdraw(name);
    name = pool.publish(memory).value();
  }
  ASSERT_TRUE(view.lease(name));
  EXPECT_FALSE(view.lease(old));
  EXPECT_EQ(pool.leases(name), 1u);
}

// One thread leases, reads and releases; the owner withdraws, waits for the holders, and writes.
// Nobody reads what is being written.
TEST(PoolLease, TheOwnerAndAHolderNeverMeetInTheMemory) {
  Pool pool(kPage);
  const Blob memory = pool.share(256);
  std::atomic<std::uint64_t> current{0};
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> held{0};
  std::jthread holder([&] {
    PoolView view = view_of(pool, 5);
    while (!over.load()) {
      const std::uint64_t name = current.load();
      if (const auto lease = view.lease(name)) {
        ++held;
        const std::byte first = lease->data[0];
        EXPECT_TRUE(std::all_of(lease->data, lease->data + lease->size,
                                [&](std::byte b) { return b == first; }));
        view.release(name);
      }
    }
  });
  // On a busy machine the holder's turn may come late.
  for (int i = 0; i < 20'000 || held.load() == 0; ++i) {
    std::fill_n(memory.data, memory.size, static_cast<std::byte>(i));
    const std::uint64_t name = pool.publish(memory).value();
    current.store(name);
    if (i % 64 == 0) {
      std::this_thread::yield();
    }
    pool.withdraw(name);
    while (pool.leases(name) != 0) {
      std::this_thread::yield();
    }
  }
  over.store(true);
  holder.join();
  EXPECT_GT(held.load(), 0u);
}

// --- Abandoned memory ------------------------------------------------------------------------

TEST(PoolAbandon, TheOwnerKeepsItsBytesAndTheHolderWritesElsewhere) {
  Pool pool(64 * kPage);
  PoolView view = view_of(pool, 0);
  const Blob memory = pool.share(3 * kPage);
  const Blob other = pool.share(kPage);
  std::fill_n(memory.data, memory.size, std::byte{'o'});
  std::fill_n(other.data, other.size, std::byte{'x'});
  const Blob part = memory.slice(100, 2 * kPage);
  const std::uint64_t name = pool.publish(part).value();
  const auto lease = view.lease(name);
  ASSERT_TRUE(lease);
  pool.withdraw(name);
  pool.abandon(name);
  const auto all = [](ConstBlob blob, char c) {
    return std::all_of(blob.data, blob.data + blob.size,
                       [&](std::byte b) { return b == static_cast<std::byte>(c); });
  };
  EXPECT_TRUE(all(memory, 'o')) << "the owner finds the same bytes";
  std::fill_n(lease->data, lease->size, std::byte{'h'});
  EXPECT_TRUE(all(memory, 'o')) << "what the holder writes is not seen";
  std::fill_n(part.data, part.size, std::byte{'n'});
  EXPECT_TRUE(all(*lease, 'h')) << "nor what the owner writes";
  view.release(name);

  EXPECT_FALSE(pool.publish(part)) << "it is no shared memory any more";
  EXPECT_FALSE(pool.publish(part.slice(kPage, kPage + 1)));
  EXPECT_FALSE(pool.publish(memory)) << "nor is anything that contains it";
  EXPECT_TRUE(pool.publish(memory.slice(2 * kPage, 3 * kPage))) << "the page behind it is";
  const auto others = view.lease(pool.publish(other).value());
  ASSERT_TRUE(others);
  EXPECT_TRUE(all(*others, 'x')) << "its neighbours are as they were";
}

TEST(PoolAbandon, TwoStretchesOfOnePage) {
  Pool pool(64 * kPage);
  PoolView view = view_of(pool, 0);
  const Blob memory = pool.share(4 * kPage);
  std::fill_n(memory.data, memory.size, std::byte{'o'});
  const std::uint64_t longer = pool.publish(memory.slice(0, 3 * kPage)).value();
  const std::uint64_t shorter = pool.publish(memory.slice(10, 20)).value();
  ASSERT_TRUE(view.lease(longer) && view.lease(shorter));
  for (const std::uint64_t name : {longer, shorter}) {
    pool.withdraw(name);
    pool.abandon(name);
  }
  EXPECT_FALSE(pool.publish(memory.slice(2 * kPage, 2 * kPage + 10)));
  EXPECT_TRUE(pool.publish(memory.slice(3 * kPage, 4 * kPage)));
}

// --- Opening ---------------------------------------------------------------------------------

// It used to kill whoever rang, by SIGPIPE.
TEST(PoolBell, OfADeadSleeperRingsUnheard) {
  EXPECT_EQ(0, in_child([] {
              auto pool = std::make_unique<Pool>();
              PoolView view = view_of(*pool, 0);
              const bool asleep = pool->inbox().about_to_sleep();
              pool.reset();
              const std::array<std::byte, 8> packet{};
              view.outbox().put(packet);
              return asleep;
            }));
}

TEST(PoolOpen, IsRefusedWhereSomethingElseIs) {
  Pool pool(kPage);
  const PoolAddress right = pool.address();
  ASSERT_TRUE(PoolView::open(right, 0));
  PoolAddress wrong = right;
  wrong.key += 1;
  EXPECT_FALSE(PoolView::open(wrong, 0)) << "another key";
  wrong = right;
  wrong.bytes += kPage;
  EXPECT_FALSE(PoolView::open(wrong, 0)) << "another size";
  wrong = right;
  wrong.pid = std::numeric_limits<std::int32_t>::max();
  EXPECT_FALSE(PoolView::open(wrong, 0)) << "no such process";
  wrong = right;
  wrong.pid = 1;
  EXPECT_FALSE(PoolView::open(wrong, 0)) << "another process";
  wrong = right;
  wrong.file = -1;
  EXPECT_FALSE(PoolView::open(wrong, 0)) << "no file";
  wrong.file = right.bell;
  EXPECT_FALSE(PoolView::open(wrong, 0)) << "a pipe";
  Pool other(kPage);
  wrong.file = other.address().file;
  EXPECT_FALSE(PoolView::open(wrong, 0)) << "another pool";
  wrong = right;
  wrong.bell = 100'000;
  EXPECT_FALSE(PoolView::open(wrong, 0)) << "no bell";
  EXPECT_THROW(PoolView::open(right, kMostSeats), Error);
}

TEST(PoolOpen, NothingIsLeftOfAPool) {
  PoolAddress address;
  {
    Pool pool(kPage);
    address = pool.address();
  }
  EXPECT_FALSE(PoolView::open(address, 0));
}

TEST(PoolOpen, AViewOutlivesItsPool) {
  auto pool = std::make_unique<Pool>(kPage);
  PoolView view = view_of(*pool, 0);
  const Blob memory = pool->share(8);
  write(memory, "lasting!");
  const auto lease = view.lease(pool->publish(memory).value());
  pool.reset();
  ASSERT_TRUE(lease);
  EXPECT_EQ(text_of(*lease), "lasting!");
}

}  // namespace
}  // namespace starling::comm
