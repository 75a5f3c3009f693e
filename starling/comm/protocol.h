// What all workers of a job must agree on before they say anything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "starling/base/error.h"

namespace starling::comm {

// Of everything that workers send to each other; raised with every change of it. Workers of
// different versions refuse each other when they meet.
inline constexpr std::uint32_t kProtocolVersion = 1;

// Bounds, so that nothing larger is allocated on somebody's word.
inline constexpr std::size_t kMostWorkers = std::size_t{1} << 20;
inline constexpr std::size_t kLongestSecret = 128;
// What one worker, and all together, may bring to an exchange when they meet, in bytes.
inline constexpr std::size_t kLargestBrought = std::size_t{1} << 20;
inline constexpr std::size_t kLargestTable = std::size_t{1} << 30;

// Throws Error{Input} if a worker wants to bring more.
inline void check_brought(std::span<const std::byte> own) {
  require(own.size() <= kLargestBrought,
          "{} bytes are too many to bring when workers meet; {} are fine", own.size(),
          kLargestBrought);
}

}  // namespace starling::comm
