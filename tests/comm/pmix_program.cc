// A worker for the tests of PMIx: started by mpirun or srun, meets the others, exchanges, and ends
// with an error if anything is not as it should be. It is linked neither to MPI nor to PMIx.
// usage: pmix_program SIZE HOW   all come
//        pmix_program stall      worker 0 comes when the others have given up
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "starling/base/error.h"
#include "starling/comm/protocol.h"
#include "starling/comm/rendezvous.h"

namespace starling::comm {
namespace {

void run(std::size_t size, const std::string& how) {
  const Job job = find_job(process_environment());
  check(job.launcher == Launcher::Pmix, "the launcher is {}", name_of(job.launcher));
  const auto rendezvous = meet(job, std::chrono::seconds(60));
  check(rendezvous->size() == size, "{} workers", rendezvous->size());
  check(rendezvous->how() == how, "met by {}", rendezvous->how());
  const std::string secret = rendezvous->secret();
  check(secret.size() == 32 || secret == job.secret, "the secret is '{}'", secret);
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{4096}, kLargestBrought}) {
    const auto own = static_cast<std::byte>(rendezvous->rank().value);
    const auto table = rendezvous->exchange(Bytestring(length, own));
    for (std::size_t rank = 0; rank < size; ++rank) {
      check(table.at(rank) == Bytestring(length, static_cast<std::byte>(rank)),
            "worker {} brought something else", rank);
    }
  }
  const auto bytes = std::as_bytes(std::span<const char>(secret));
  for (const Bytestring& other : rendezvous->exchange(bytes)) {
    check(Unpacker(other).all_text() == secret, "the secrets differ");
  }
}

void stall() {
  const bool late = process_environment()("PMIX_RANK") == "0";
  std::this_thread::sleep_for(std::chrono::seconds(late ? 8 : 0));
  try {
    meet(find_job(process_environment()), std::chrono::seconds(3));
  } catch (const Error& error) {
    check(late || error.code() == ErrorCode::Stalled, "{}", error.what());
    return;
  }
  check(late, "nobody was missing");
}

}  // namespace
}  // namespace starling::comm

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::string(argv[1]) == "stall") {
      starling::comm::stall();
    } else {
      starling::require(argc == 3, "usage: pmix_program SIZE HOW, or pmix_program stall");
      starling::comm::run(std::stoul(argv[1]), argv[2]);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
