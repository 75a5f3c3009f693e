// The wire over MPI, two-sided calls only, for sites whose fabric only their MPI drives. Loaded at
// run time (module.h).
//
// MPI has nothing to sleep on and cannot go on without a worker: files() is empty, and a lost
// worker ends the job, by name. Packets and bulk data have a communicator each. All calls come from
// one thread at a time.
#define OMPI_SKIP_MPICXX 1  // the C interface alone
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/wire.h"

namespace starling::comm {
namespace {

// Receives that wait for packets, at any time.
constexpr std::size_t kPosted = 16;
// Numbers of transfers are cut to this many; far fewer are under way at once.
constexpr std::uint64_t kTags = 1 << 30;
constexpr int kPacketTag = 1;

void mpi_check(int code, const char* what) {
  if (code != MPI_SUCCESS) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    throw Error(ErrorCode::Lost, fmt::format("MPI: {}: {}", what, text.data()));
  }
}

int as_int(std::size_t count) {
  check(count <= INT32_MAX, "{} bytes do not fit one MPI message", count);
  return static_cast<int>(count);
}

// Initialises MPI unless the program has done so, and ends it again only in that case.
class Environment {
 public:
  Environment() {
    int there = 0;
    mpi_check(MPI_Initialized(&there), "is it there?");
    if (there != 0) {
      return;
    }
    int provided = 0;
    mpi_check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "no start");
    require(provided >= MPI_THREAD_SERIALIZED, "this MPI does not allow calls from other threads");
    ours_ = true;
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    if (ours_) {
      MPI_Finalize();
    }
  }

 private:
  bool ours_ = false;
};

class MpiWire final : public Wire {
 public:
  explicit MpiWire(std::size_t workers);
  ~MpiWire() override;

  Bytestring address() const override;
  void open(Rank self, std::span<const Bytestring> addresses, std::uint64_t secret,
            Listener& listener) override;
  void packet(Rank to, std::span<const std::byte> packet) override;
  void send(Rank to, std::uint64_t number, ConstBlob data, Token token) override;
  void receive(Rank from, std::uint64_t number, Blob into, Token token) override;
  void cancel_receive(Token token) override;
  void drop(Rank peer, bool left) override;
  bool progress() override;
  std::span<const int> files() const override { return {}; }
  bool arm() override { return false; }
  void close() override;

 private:
  using Packet = std::array<std::byte, kMaxPacket>;
  // What belongs to the request of the same index.
  struct Work {
    std::unique_ptr<Packet> packet{};  // of a packet under way
    Token token = 0;                   // of a transfer
  };

  int own_rank() const;
  void post_receive(std::size_t slot);
  bool take_packets();
  bool finish_work();
  void add(MPI_Request request, Work work);

  MPI_Comm packets_ = MPI_COMM_NULL;
  MPI_Comm bulk_ = MPI_COMM_NULL;
  Listener* listener_ = nullptr;
  std::array<Packet, kPosted> arriving_;
  std::array<MPI_Request, kPosted> arrivals_;
  std::size_t head_ = 0;  // messages arrive in the order in which receives were posted
  std::vector<MPI_Request> requests_;
  std::vector<Work> work_;
  std::vector<int> ended_;
  std::vector<MPI_Status> statuses_;
  bool closed_ = false;
  Environment environment_;  // ends first: until then MPI may read packets
};

MpiWire::MpiWire(std::size_t workers) {
  int size = 0;
  mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &size), "no size");
  require(
      static_cast<std::size_t>(size) == workers,
      "the launcher started {} workers, but MPI knows {}: use mpirun or srun for this transport",
      workers, size);
  mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &packets_), "no communicator");
  mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &bulk_), "no communicator");
  arrivals_.fill(MPI_REQUEST_NULL);
}

MpiWire::~MpiWire() {
  close();
  MPI_Comm_free(&packets_);
  MPI_Comm_free(&bulk_);
}

int MpiWire::own_rank() const {
  int rank = 0;
  mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "no rank");
  return rank;
}

Bytestring MpiWire::address() const {
  const int rank = own_rank();
  Bytestring address(sizeof(rank));
  std::memcpy(address.data(), &rank, sizeof(rank));
  return address;
}

void MpiWire::open(Rank self, std::span<const Bytestring>, std::uint64_t, Listener& listener) {
  require(own_rank() == static_cast<int>(self.value),
          "the launcher calls this worker {}, MPI calls it {}", self, own_rank());
  listener_ = &listener;
  for (std::size_t slot = 0; slot < kPosted; ++slot) {
    post_receive(slot);
  }
}

void MpiWire::post_receive(std::size_t slot) {
  mpi_check(MPI_Irecv(arriving_[slot].data(), as_int(kMaxPacket), MPI_BYTE, MPI_ANY_SOURCE,
                      kPacketTag, packets_, &arrivals_[slot]),
            "receive");
}

void MpiWire::add(MPI_Request request, Work work) {
  requests_.push_back(request);
  work_.push_back(std::move(work));
}

void MpiWire::packet(Rank to, std::span<const std::byte> packet) {
  auto copy = std::make_unique<Packet>();
  std::memcpy(copy->data(), packet.data(), packet.size());
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Isend(copy->data(), as_int(packet.size()), MPI_BYTE, static_cast<int>(to.value),
                      kPacketTag, packets_, &request),
            "send");
  add(request, {.packet = std::move(copy)});
}

void MpiWire::send(Rank to, std::uint64_t number, ConstBlob data, Token token) {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Isend(data.data, as_int(data.size), MPI_BYTE, static_cast<int>(to.value),
                      static_cast<int>(number % kTags), bulk_, &request),
            "send");
  add(request, {.token = token});
}

void MpiWire::receive(Rank from, std::uint64_t number, Blob into, Token token) {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Irecv(into.data, as_int(into.size), MPI_BYTE, static_cast<int>(from.value),
                      static_cast<int>(number % kTags), bulk_, &request),
            "receive");
  add(request, {.token = token});
}

void MpiWire::cancel_receive(Token token) {
  for (std::size_t i = 0; i < work_.size(); ++i) {
    if (work_[i].packet == nullptr && work_[i].token == token) {
      MPI_Cancel(&requests_[i]);
    }
  }
}

// Once a worker has ended, MPI neither ends nor fails what is under way with it.
void MpiWire::drop(Rank peer, bool left) {
  if (!closed_ && !left) {
    fmt::print(stderr, "starling: worker {} was lost; over MPI that ends the job\n", peer);
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

bool MpiWire::take_packets() {
  bool any = false;
  for (std::size_t i = 0; i < kPosted; ++i) {
    int there = 0;
    MPI_Status status;
    mpi_check(MPI_Test(&arrivals_[head_], &there, &status), "receive");
    if (there == 0) {
      break;
    }
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    const Packet packet = arriving_[head_];
    post_receive(std::exchange(head_, (head_ + 1) % kPosted));
    listener_->on_packet(Rank{static_cast<std::uint32_t>(status.MPI_SOURCE)},
                         std::span(packet).first(static_cast<std::size_t>(count)));
    any = true;
  }
  return any;
}

bool MpiWire::finish_work() {
  if (requests_.empty()) {
    return false;
  }
  int count = 0;
  ended_.resize(requests_.size());
  statuses_.resize(requests_.size());
  mpi_check(MPI_Testsome(as_int(requests_.size()), requests_.data(), &count, ended_.data(),
                         statuses_.data()),
            "progress");
  if (count <= 0) {
    return false;
  }
  std::vector<std::pair<Token, bool>> transfers;
  for (int i = 0; i < count; ++i) {
    const Work& done = work_[static_cast<std::size_t>(ended_[static_cast<std::size_t>(i)])];
    int cancelled = 0;
    MPI_Test_cancelled(&statuses_[static_cast<std::size_t>(i)], &cancelled);
    if (done.packet == nullptr) {
      transfers.emplace_back(done.token, cancelled == 0);
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] != MPI_REQUEST_NULL) {
      requests_[kept] = requests_[i];
      work_[kept++] = std::move(work_[i]);
    }
  }
  requests_.resize(kept);
  work_.resize(kept);
  for (const auto& [token, done] : transfers) {
    listener_->on_transfer(token, done);
  }
  return true;
}

bool MpiWire::progress() {
  const bool packets = take_packets();
  return finish_work() || packets;
}

void MpiWire::close() {
  if (std::exchange(closed_, true)) {
    return;
  }
  for (MPI_Request& request : arrivals_) {
    if (request != MPI_REQUEST_NULL) {
      MPI_Cancel(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  // What others have not taken stays with MPI until it ends, and the packets here.
  for (MPI_Request& request : requests_) {
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
  requests_.clear();
}

}  // namespace
}  // namespace starling::comm

extern "C" starling::comm::Wire* starling_make_wire(std::size_t workers) {
  return std::make_unique<starling::comm::MpiWire>(workers).release();
}
