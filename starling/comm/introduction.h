// How a worker introduces itself to worker 0, and what worker 0 makes of it: 8 bytes "starling",
// the version, then rank, size, length of the secret, and the secret padded to its longest. Every
// version of the protocol begins like this, up to the version.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "starling/comm/job.h"
#include "starling/comm/packing.h"
#include "starling/comm/protocol.h"

namespace starling::comm {

inline constexpr std::size_t kOpeningLength = 12;  // up to the version
inline constexpr std::size_t kRestLength = 12 + kLongestSecret;

struct Introduction {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  std::string secret;
};

// Opening and rest of this worker's.
Bytestring introduce(const Job& job);

// Why whoever sent the opening is not let in, or nothing.
std::optional<std::string> fault_of_opening(std::span<const std::byte> opening);
Introduction unpack_rest(std::span<const std::byte> rest);
// Why the worker is not let into the job, or nothing.
std::optional<std::string> fault_of(const Introduction& introduction, const Job& job);

}  // namespace starling::comm
