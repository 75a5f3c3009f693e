// The main() of a program that is a worker: what it throws is said on stderr, exit code 1.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>

namespace starling::test {

inline int guarded(int (*main_of)(int, char**), int argc, char** argv) {
  try {
    return main_of(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}

}  // namespace starling::test
