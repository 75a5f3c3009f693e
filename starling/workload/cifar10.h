// CIFAR-10 (Krizhevsky 2009): 50,000 and 10,000 colour images of 32 x 32 pixels, 10 classes, in the
// official binary form: six files of 10,000 records, each a label, then 1,024 bytes of red, of
// green and of blue.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "starling/workload/image_data.h"

namespace starling::workload {

inline constexpr std::size_t kCifarSide = 32;
inline constexpr std::size_t kCifarPlane = kCifarSide * kCifarSide;
inline constexpr std::size_t kCifarRecord = 1 + 3 * kCifarPlane;
inline constexpr std::size_t kCifarRecords = 10'000;  // of a file
inline constexpr std::size_t kCifarClasses = 10;

// The last one is the test part.
inline constexpr std::array<std::string_view, 6> kCifar10Files = {
    "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
    "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
inline constexpr std::array<std::string_view, 6> kCifar10Digests = {  // MD5
    "5dd7e06a14cb22eb9f671a540d1b7c25", "5ea93a67294ea407fff1d09f752e9692",
    "942cd6a4bcdd0dd3c604fbe906cb4421", "ae636b3ba5c66a11e91e8cb52e771fcb",
    "53f37980c15c3d472c316c40844f3f0d", "803d5f7f4d78ea53de84dbe85f74fb6d"};

// Throws Error{Input} naming the file that cannot be read or is damaged.
ImageSet read_cifar10(const std::filesystem::path& folder);

// Appends the images of whole records. Throws Error{Input} for a label out of range; `file` is
// where the records come from.
void append_records(Images& images, std::span<const std::uint8_t> records,
                    const std::filesystem::path& file);

}  // namespace starling::workload
