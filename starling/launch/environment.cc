#include "starling/launch/environment.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "starling/launch/descriptor.h"

namespace starling::launch {
namespace {

// A block from this size on is mapped on its own, and unmapped when it is freed.
constexpr std::size_t kMmapThreshold = std::size_t{1} << 30;
// This much free memory is kept at the end of the heap.
constexpr std::size_t kTrimThreshold = std::size_t{1} << 34;

template <std::size_t kBytes>
std::string random_hex() {
  std::array<unsigned char, kBytes> bytes;
  // At most 256 bytes: never less than asked for.
  checked(static_cast<int>(getrandom(bytes.data(), kBytes, 0)), "no random numbers");
  std::string text;
  for (const unsigned char byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

}  // namespace

Identity make_identity() { return {"unix:@starling-" + random_hex<8>(), random_hex<16>()}; }

Environment own_environment() {
  Environment all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      all.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return all;
}

std::size_t usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return std::max(1, CPU_COUNT(&set));
  }
  return std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));  // more cores than the set can hold
}

Environment job_environment(Environment inherited,
                            std::span<const std::pair<std::string, std::string>> extra,
                            const Identity& identity, std::size_t workers, std::size_t cores) {
  Environment job = std::move(inherited);
  for (const auto& [name, value] : extra) {
    job[name] = value;
  }
  const std::string threads = fmt::format("{}", std::max<std::size_t>(1, cores / workers));
  for (const char* name : {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    job.emplace(name, threads);
  }
  job.emplace("MALLOC_MMAP_THRESHOLD_", fmt::format("{}", kMmapThreshold));
  job.emplace("MALLOC_TRIM_THRESHOLD_", fmt::format("{}", kTrimThreshold));
  job["STARLING_SIZE"] = fmt::format("{}", workers);
  job["STARLING_MEET"] = identity.meet;
  job["STARLING_SECRET"] = identity.secret;
  return job;
}

std::vector<std::string> worker_environment(const Environment& job, std::size_t rank) {
  std::vector<std::string> entries = {fmt::format("STARLING_RANK={}", rank)};
  entries.reserve(job.size() + 1);
  for (const auto& [name, value] : job) {
    if (name != "STARLING_RANK") {
      entries.push_back(fmt::format("{}={}", name, value));
    }
  }
  return entries;
}

}  // namespace starling::launch
