// Memory of one worker that the other workers of its node can map: a memfd, opened by them through
// the owner's /proc entry when they meet. Bulk data between them does not travel: it is read and
// written in place, under leases.
//
//   share/unshare     the owner takes memory from the pool and gives it back
//   publish/withdraw  names a stretch of it for one use, and ends that name
//   lease/release     a peer looks the name up; while it holds the lease the owner must not reuse
//                     the memory
//
// Leases are words in the mapped memory itself, no messages: a peer marks itself as holder, then
// looks whether the name still stands; the owner strikes the name, then looks for holders. Both are
// sequentially consistent, so at least one of them sees the other.
//
// The file is as large as the machine's memory and sparse: only what is touched takes room. It
// has no name anywhere and vanishes with the last process that maps it.
//
// Threads: share() and unshare() from any; the rest from the engine's.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "starling/base/units.h"
#include "starling/comm/blob.h"
#include "starling/comm/mailbox.h"

namespace starling::comm {

// How to find a worker's pool; part of what workers exchange when they meet.
struct PoolAddress {
  std::int32_t pid = 0;
  std::int32_t file = -1;
  std::int32_t bell = -1;  // of its inbox
  std::uint64_t bytes = 0;
  std::uint64_t key = 0;  // random; the same number stands in the pool
};

class Pool {
 public:
  // `bytes` 0: as many as the machine's memory has.
  explicit Pool(std::size_t bytes = 0);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  PoolAddress address() const;
  Inbox& inbox() { return *inbox_; }

  // Throws Error{Input} if there is not so much room. 64-byte aligned, whole pages from 4 KiB on.
  Blob share(std::size_t bytes);
  // The same; nothing if there is not so much room.
  std::optional<Blob> try_share(std::size_t bytes);
  void unshare(Blob memory);
  bool contains(ConstBlob memory) const;

  // Nothing if the memory is not from this pool, or too many names stand.
  std::optional<std::uint64_t> publish(ConstBlob memory);
  // No lease begins afterwards. The name is gone for good.
  void withdraw(std::uint64_t name);
  // How many hold `name`, withdrawn or not, except those who left. A withdrawn name that is held by
  // nobody is forgotten: ask no more.
  std::size_t leases(std::uint64_t name) const;
  // Replaces the pages of what `name` named, in this process alone, by others with the same
  // content; that memory is never used as shared memory again. Requires: withdrawn.
  void abandon(std::uint64_t name);
  // Whoever sat there is gone and holds nothing any more.
  void leave(std::size_t seat);

 private:
  friend class PoolView;
  struct Header;

  int file_ = -1;
  std::size_t bytes_ = 0;
  std::byte* base_ = nullptr;
  std::uint64_t key_ = 0;
  std::uint64_t next_ = 1;
  std::unique_ptr<Inbox> inbox_;
  mutable std::mutex mutex_;                 // guards free_ and taken_
  std::map<std::size_t, std::size_t> free_;  // offset -> bytes
  std::map<std::size_t, std::size_t> taken_;
  std::map<std::size_t, std::size_t> abandoned_;  // the engine's thread alone
};

// Another worker's pool, seen from a seat of this worker.
class PoolView {
 public:
  // Nothing where it cannot be mapped: another host, another PID namespace, a worker that is gone.
  static std::optional<PoolView> open(const PoolAddress& address, std::size_t seat);
  PoolView(PoolView&& other) noexcept;
  PoolView& operator=(PoolView&& other) = delete;
  ~PoolView();

  // Nothing if the name does not stand (any more).
  std::optional<Blob> lease(std::uint64_t name);
  // False if the owner has ended the lease itself, by leave(): what was read may be anything.
  bool release(std::uint64_t name);
  // Packets for its owner.
  Outbox& outbox() { return outbox_; }

 private:
  PoolView(std::byte* base, std::size_t bytes, std::size_t seat, int bell);
  std::byte* base_;
  std::size_t bytes_;
  std::size_t seat_;
  Outbox outbox_;
};

}  // namespace starling::comm
