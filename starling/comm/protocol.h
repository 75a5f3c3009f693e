// What all workers of a job must agree on before they say anything else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::comm {

// Of everything that workers send to each other; raised with every change of it. Workers of
// different versions refuse each other when they meet.
inline constexpr std::uint32_t kProtocolVersion = 1;

// Bounds on what is believed of others: nothing larger is allocated on somebody's word.
inline constexpr std::size_t kMostWorkers = std::size_t{1} << 20;
inline constexpr std::size_t kLongestSecret = 128;
inline constexpr std::size_t kLargestBrought = std::size_t{1} << 20;  // bytes, in one exchange

}  // namespace starling::comm
