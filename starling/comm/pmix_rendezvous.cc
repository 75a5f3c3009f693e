#include "starling/comm/pmix_rendezvous.h"

#include <pmix.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "starling/base/error.h"
#include "starling/comm/protocol.h"
#include "starling/comm/secret.h"

namespace starling::comm {
namespace {

constexpr const char* kKey = "starling.meet.";

// Throws Error{Input}, for it is the launcher's PMIx that does not do what we need.
void check_status(pmix_status_t status, const char* what) {
  require(status == PMIX_SUCCESS, "PMIx failed to {}: {}", what, PMIx_Error_string(status));
}

// mpirun inside an allocation of Slurm sees Slurm's variables too.
std::string name_of_launcher() {
  const Variables variables = process_environment();
  if (variables("OMPI_COMM_WORLD_RANK")) {
    return "PMIx (mpirun)";
  }
  return variables("SLURM_PROCID") ? "PMIx (srun)" : "PMIx";
}

// PMIx_Init knows no limit, and a server that is losing its workers at that moment may never
// answer: the thread that waits for it is then left behind.
pmix_proc_t become_client(Duration patience) {
  struct Answer {
    pmix_proc_t self{};
    pmix_status_t status = PMIX_SUCCESS;
  };
  std::packaged_task<Answer()> init([] {
    Answer answer;
    answer.status = PMIx_Init(&answer.self, nullptr, 0);
    return answer;
  });
  std::future<Answer> future = init.get_future();
  std::thread(std::move(init)).detach();
  if (future.wait_for(patience) != std::future_status::ready) {
    throw Error(ErrorCode::Stalled,
                fmt::format("the launcher's PMIx server has not answered within {:.3g} s",
                            seconds(patience)));
  }
  const Answer answer = future.get();
  require(answer.status == PMIX_SUCCESS,
          "PMIX_RANK is set, but no PMIx server of a launcher answers: {}",
          PMIx_Error_string(answer.status));
  return answer.self;
}

// This process as a client of PMIx, as long as it lives.
class Client {
 public:
  explicit Client(Duration patience) : self_(become_client(patience)) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { PMIx_Finalize(nullptr, 0); }

  const pmix_proc_t& self() const { return self_; }
  pmix_proc_t worker(pmix_rank_t rank) const {
    pmix_proc_t process = self_;
    process.rank = rank;
    return process;
  }

 private:
  pmix_proc_t self_;
};

// The end of a fence, as PMIx's own thread tells it.
class Completion {
 public:
  void finish(pmix_status_t status) {
    const std::scoped_lock lock(mutex_);
    status_ = status;
    done_.notify_all();
  }
  // The status, ready for another fence; nothing if it takes longer.
  std::optional<pmix_status_t> wait(Duration patience) {
    std::unique_lock lock(mutex_);
    done_.wait_for(lock, patience, [&] { return status_.has_value(); });
    return std::exchange(status_, std::nullopt);
  }

 private:
  std::mutex mutex_;  // guards status_
  std::condition_variable done_;
  std::optional<pmix_status_t> status_;
};

class PmixRendezvous final : public Rendezvous {
 public:
  PmixRendezvous(const Job& job, Duration patience);

  Rank rank() const override { return Rank{client_.self().rank}; }
  std::size_t size() const override { return size_; }
  std::string how() const override { return name_of_launcher(); }
  std::string secret() const override { return secret_; }
  std::vector<Bytestring> exchange(std::span<const std::byte> own) override;

 private:
  std::size_t find_size() const;
  void put(const std::string& key, std::span<const std::byte> own) const;
  void fence();
  Bytestring get(const std::string& key, pmix_rank_t rank) const;
  // The first exchange: versions must agree, and worker 0 brings the secret.
  std::string agree(const std::string& given);

  Completion completion_;  // outlives the client, which may call back until it ends
  Client client_;
  const Duration patience_;
  std::size_t exchanges_ = 0;
  std::size_t size_;
  std::string secret_;
};

PmixRendezvous::PmixRendezvous(const Job& job, Duration patience)
    : client_(patience), patience_(patience), size_(find_size()), secret_(agree(job.secret)) {}

std::size_t PmixRendezvous::find_size() const {
  const pmix_proc_t job = client_.worker(PMIX_RANK_WILDCARD);
  pmix_value_t* value = nullptr;
  check_status(PMIx_Get(&job, PMIX_JOB_SIZE, nullptr, 0, &value), "say how many workers there are");
  const std::size_t size = value->data.uint32;
  PMIX_VALUE_RELEASE(value);
  require(client_.self().rank < size && size <= kMostWorkers,
          "PMIx says that this is worker {} of {}", client_.self().rank, size);
  return size;
}

std::string PmixRendezvous::agree(const std::string& given) {
  Packer packer;
  packer.number(kProtocolVersion);
  if (rank() == Rank{0}) {
    packer.text(given.empty() ? draw_secret() : given);
  }
  const std::vector<Bytestring> table = exchange(packer.packed());
  std::string secret;
  for (std::size_t worker = 0; worker < table.size(); ++worker) {
    Unpacker unpacker(table[worker]);
    const std::uint32_t version = unpacker.number();
    require(version == kProtocolVersion,
            "worker {} has version {} of the protocol, worker {} has version {}", worker, version,
            rank(), kProtocolVersion);
    if (worker == 0) {
      secret = unpacker.all_text();
    }
  }
  require(given.empty() || given == secret,
          "STARLING_SECRET of worker {} is another than that of worker 0", rank());
  return secret;
}

std::vector<Bytestring> PmixRendezvous::exchange(std::span<const std::byte> own) {
  check_brought(own);
  const std::string key = kKey + std::to_string(exchanges_++);
  put(key, own);
  fence();
  std::vector<Bytestring> table;
  for (std::size_t worker = 0; worker < size_; ++worker) {
    table.push_back(get(key, static_cast<pmix_rank_t>(worker)));
  }
  return table;
}

void PmixRendezvous::put(const std::string& key, std::span<const std::byte> own) const {
  Bytestring bytes(own.begin(), own.end());
  pmix_value_t value{};
  value.type = PMIX_BYTE_OBJECT;
  value.data.bo.bytes = reinterpret_cast<char*>(bytes.data());
  value.data.bo.size = bytes.size();
  check_status(PMIx_Put(PMIX_GLOBAL, key.c_str(), &value), "take what this worker brings");
  check_status(PMIx_Commit(), "publish what this worker brings");
}

void PmixRendezvous::fence() {
  pmix_info_t collect{};
  bool yes = true;
  PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
  const auto finish = [](pmix_status_t status, void* completion) {
    static_cast<Completion*>(completion)->finish(status);
  };
  const pmix_status_t started = PMIx_Fence_nb(nullptr, 0, &collect, 1, finish, &completion_);
  if (started == PMIX_OPERATION_SUCCEEDED) {
    return;  // and PMIx does not call back
  }
  check_status(started, "gather the workers");
  const std::optional<pmix_status_t> ended = completion_.wait(patience_);
  if (!ended) {
    throw Error(ErrorCode::Stalled, fmt::format("not all of the {} workers came within {:.3g} s",
                                                size_, seconds(patience_)));
  }
  if (*ended != PMIX_SUCCESS) {
    throw Error(ErrorCode::Lost,
                fmt::format("the workers could not meet: {} (PMIx)", PMIx_Error_string(*ended)));
  }
}

Bytestring PmixRendezvous::get(const std::string& key, pmix_rank_t rank) const {
  const pmix_proc_t worker = client_.worker(rank);
  // The fence has brought everything: nobody waits here, unless the launcher breaks its word.
  pmix_info_t limit{};
  int longest = static_cast<int>(std::chrono::ceil<std::chrono::seconds>(patience_).count());
  PMIX_INFO_LOAD(&limit, PMIX_TIMEOUT, &longest, PMIX_INT);
  pmix_value_t* value = nullptr;
  check_status(PMIx_Get(&worker, key.c_str(), &limit, 1, &value), "hand over what was brought");
  Bytestring bytes;
  if (value->type == PMIX_BYTE_OBJECT && value->data.bo.size > 0) {
    bytes.resize(value->data.bo.size);
    std::memcpy(bytes.data(), value->data.bo.bytes, bytes.size());
  }
  PMIX_VALUE_RELEASE(value);
  return bytes;
}

}  // namespace
}  // namespace starling::comm

extern "C" starling::comm::Rendezvous* starling_create_pmix_rendezvous(
    const starling::comm::Job& job, starling::Duration patience) {
  return std::make_unique<starling::comm::PmixRendezvous>(job, patience).release();
}
