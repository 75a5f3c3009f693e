#include "starling/comm/pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "starling/base/error.h"

namespace starling::comm {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kGrain = 64;
constexpr std::size_t kSlots = 2048;
constexpr std::size_t kWords = kMostSeats / 64;

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

std::size_t machine_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::byte* map_file(int file, std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

// A name is `count * kSlots + slot`: it leads to its slot, and is never used twice.
struct alignas(64) Entry {
  std::atomic<std::uint64_t> name{0};  // 0: does not stand
  std::atomic<std::uint64_t> offset{0};
  std::atomic<std::uint64_t> bytes{0};
  std::array<std::atomic<std::uint64_t>, kWords> holders{};  // one bit per seat
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::atomic<std::uint64_t>& word_of(Entry& entry, std::size_t seat) {
  return entry.holders[seat / 64];
}
std::uint64_t bit_of(std::size_t seat) { return std::uint64_t{1} << (seat % 64); }

}  // namespace

// At the start of the file.
struct Pool::Header {
  std::uint64_t key = 0;
  std::array<Entry, kSlots> entries;

  // Where the inbox begins.
  static std::size_t inbox() { return round_up(sizeof(Header), kPage); }
  static Header& of(std::byte* base) { return *std::launder(reinterpret_cast<Header*>(base)); }
  Entry& entry(std::uint64_t name) { return entries[name % kSlots]; }
};

Pool::Pool(std::size_t bytes)
    : bytes_(round_up((bytes == 0 ? machine_memory() : bytes) + Header::inbox() + inbox_bytes(),
                      kPage)) {
  file_ = memfd_create("starling-pool", MFD_CLOEXEC);
  if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(bytes_)) == 0) {
    base_ = map_file(file_, bytes_);
  }
  if (base_ == nullptr) {
    const int why = errno;
    if (file_ >= 0) {
      ::close(file_);
    }
    throw Error(ErrorCode::Input,
                fmt::format("no shared memory of {} bytes: {}", bytes_, std::strerror(why)));
  }
  new (base_) Header;
  while (getrandom(&key_, sizeof(key_), 0) != sizeof(key_)) {
  }
  Header::of(base_).key = key_;
  inbox_ = std::make_unique<Inbox>(base_ + Header::inbox());
  const std::size_t begin = round_up(Header::inbox() + inbox_bytes(), kPage);
  free_.emplace(begin, bytes_ - begin);
}

Pool::~Pool() {
  munmap(base_, bytes_);
  ::close(file_);
}

PoolAddress Pool::address() const {
  return {.pid = getpid(), .file = file_, .bell = inbox_->bell(), .bytes = bytes_, .key = key_};
}

Blob Pool::share(std::size_t bytes) {
  const auto memory = try_share(bytes);
  if (!memory) {
    throw Error(
        ErrorCode::Input,
        fmt::format("the shared memory of {} bytes has no room for {} more", bytes_, bytes));
  }
  return *memory;
}

// First fit. Large stretches begin on pages of their own, so that streaming stores of one worker
// do not meet another's data in a line.
std::optional<Blob> Pool::try_share(std::size_t bytes) {
  // The whole file has no room for itself; more than that would wrap around below.
  const std::size_t need =
      bytes > bytes_ ? bytes_
                     : round_up(std::max<std::size_t>(bytes, 1), bytes < kPage ? kGrain : kPage);
  const std::lock_guard lock(mutex_);
  for (const auto& [offset, room] : free_) {
    const std::size_t begin = bytes < kPage ? offset : round_up(offset, kPage);
    if (begin + need > offset + room) {
      continue;
    }
    const std::size_t end = offset + room;
    const std::size_t from = offset;
    free_.erase(from);
    if (begin > from) {
      free_.emplace(from, begin - from);
    }
    if (begin + need < end) {
      free_.emplace(begin + need, end - begin - need);
    }
    taken_.emplace(begin, need);
    return Blob{base_ + begin, bytes};
  }
  return std::nullopt;
}

void Pool::unshare(Blob memory) {
  const std::lock_guard lock(mutex_);
  const auto known = taken_.find(static_cast<std::size_t>(memory.data - base_));
  check(known != taken_.end(), "memory given back that was not taken");
  auto [offset, bytes] = *known;
  taken_.erase(known);
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(offset, bytes);
}

bool Pool::contains(ConstBlob memory) const {
  return memory.data >= base_ && memory.data + memory.size <= base_ + bytes_;
}

std::optional<std::uint64_t> Pool::publish(ConstBlob memory) {
  if (!contains(memory)) {
    return std::nullopt;
  }
  const auto offset = static_cast<std::size_t>(memory.data - base_);
  for (const auto& [begin, bytes] : abandoned_) {
    if (offset < begin + bytes && begin < offset + memory.size) {
      return std::nullopt;
    }
  }
  // A few tries: slots are taken in turn, and nearly all names are short-lived.
  for (int i = 0; i < 64; ++i) {
    const std::uint64_t name = next_++;
    Entry& entry = Header::of(base_).entry(name);
    if (entry.name.load() != 0 || leases(name) != 0) {
      continue;
    }
    entry.offset.store(static_cast<std::uint64_t>(memory.data - base_));
    entry.bytes.store(memory.size);
    entry.name.store(name);
    return name;
  }
  return std::nullopt;
}

void Pool::withdraw(std::uint64_t name) {
  Entry& entry = Header::of(base_).entry(name);
  check(entry.name.load() == name, "name {} withdrawn that does not stand", name);
  entry.name.store(0);
}

std::size_t Pool::leases(std::uint64_t name) const {
  std::size_t count = 0;
  for (const auto& word : Header::of(base_).entry(name).holders) {
    count += static_cast<std::size_t>(std::popcount(word.load()));
  }
  return count;
}

void Pool::abandon(std::uint64_t name) {
  const Entry& entry = Header::of(base_).entry(name);
  const std::size_t begin = entry.offset.load() / kPage * kPage;
  const std::size_t end = round_up(entry.offset.load() + entry.bytes.load(), kPage);
  const std::vector<std::byte> content(base_ + begin, base_ + end);
  void* at = mmap(base_ + begin, end - begin, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  check(at != MAP_FAILED, "mmap: {}", std::strerror(errno));
  std::memcpy(base_ + begin, content.data(), content.size());
  std::size_t& longest = abandoned_[begin];
  longest = std::max(longest, end - begin);
}

void Pool::leave(std::size_t seat) {
  for (Entry& entry : Header::of(base_).entries) {
    word_of(entry, seat).fetch_and(~bit_of(seat));
  }
}

std::optional<PoolView> PoolView::open(const PoolAddress& address, std::size_t seat) {
  check(seat < kMostSeats, "seat {} of a pool", seat);
  const std::string path = fmt::format("/proc/{}/fd/{}", address.pid, address.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) {
    return std::nullopt;
  }
  // In another PID namespace that path may lead to some other file: look before touching it.
  std::uint64_t key = 0;
  const bool same = pread(file, &key, sizeof(key), 0) == sizeof(key) && key == address.key &&
                    lseek(file, 0, SEEK_END) == static_cast<off_t>(address.bytes);
  std::byte* base = same ? map_file(file, address.bytes) : nullptr;
  ::close(file);
  if (base == nullptr) {
    return std::nullopt;
  }
  const std::string pipe = fmt::format("/proc/{}/fd/{}", address.pid, address.bell);
  // Also for reading: a pipe that nobody can read kills who writes to it, and the owner may die.
  const int bell = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (bell < 0) {
    munmap(base, address.bytes);
    return std::nullopt;
  }
  return PoolView(base, address.bytes, seat, bell);
}

PoolView::PoolView(std::byte* base, std::size_t bytes, std::size_t seat, int bell)
    : base_(base), bytes_(bytes), seat_(seat), outbox_(base + Pool::Header::inbox(), seat, bell) {}

PoolView::PoolView(PoolView&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_),
      seat_(other.seat_),
      outbox_(std::move(other.outbox_)) {}

PoolView::~PoolView() {
  if (base_ != nullptr) {
    munmap(base_, bytes_);
  }
}

std::optional<Blob> PoolView::lease(std::uint64_t name) {
  Entry& entry = Pool::Header::of(base_).entry(name);
  // We may hold another name that has this place now: a name that is gone must not touch its mark.
  if (name == 0 || entry.name.load() != name) {
    return std::nullopt;
  }
  word_of(entry, seat_).fetch_or(bit_of(seat_));
  if (entry.name.load() != name) {
    word_of(entry, seat_).fetch_and(~bit_of(seat_));
    return std::nullopt;
  }
  // The name stood while we were marked as holder: what it names stays until we release.
  return Blob{base_ + entry.offset.load(), entry.bytes.load()};
}

bool PoolView::release(std::uint64_t name) {
  auto& word = word_of(Pool::Header::of(base_).entry(name), seat_);
  return (word.fetch_and(~bit_of(seat_)) & bit_of(seat_)) != 0;
}

}  // namespace starling::comm
