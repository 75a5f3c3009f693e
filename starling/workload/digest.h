// Digests of data, to tell whether it is the published one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace starling::workload {

// In small hexadecimal digits, as md5sum and sha256sum print them.
std::string sha256(std::span<const std::span<const std::byte>> pieces);
std::string md5(std::span<const std::uint8_t> bytes);
// Throws Error{Environment} if the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& file);

}  // namespace starling::workload
