// Another program, run to its end.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace starling::workload {

struct Ended {
  int code = 0;             // as a shell has it: 128 + S if signal S killed it
  std::string output = "";  // what it wrote to stdout and stderr
};

// Looks for the first word on PATH; stdin is empty. None: it is not there. Throws
// Error{Environment} if it cannot be run for another reason.
std::optional<Ended> run_program(const std::vector<std::string>& words,
                                 const std::filesystem::path& folder);

}  // namespace starling::workload
