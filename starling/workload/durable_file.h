// Files that are there whole or not at all, also if the machine stops in the middle. Errors of the
// file system are Error{Environment}, in one line that names the file: a full disk is
// "cannot write FILE: No space left on device". Threads: any.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace starling::workload {

using Pieces = std::vector<std::span<const std::byte>>;

// Written beside (FILE.part), on disk, then renamed. What does not fit on the disk takes no room of
// it, as far as the file system can reserve room.
void write_durably(const std::filesystem::path& file, const Pieces& pieces);
void write_durably(const std::filesystem::path& file, std::string_view text);

// Renames a folder: what it holds is on disk before, and its new name after. Both names are in the
// same folder.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

// The whole of a file.
std::vector<std::byte> read_bytes(const std::filesystem::path& file);

}  // namespace starling::workload
