#include "starling/train/agreement.h"

#include <sstream>

#include "starling/base/error.h"

namespace starling::train {
namespace {

std::string first_difference(const std::string& own, const std::string& other) {
  std::istringstream own_lines(own);
  std::istringstream other_lines(other);
  while (true) {
    std::string a;
    std::string b;
    const bool has_a = static_cast<bool>(std::getline(own_lines, a));
    const bool has_b = static_cast<bool>(std::getline(other_lines, b));
    if (!has_a && !has_b) {
      return "";
    }
    if (a != b || has_a != has_b) {
      return fmt::format("has {}, worker 0 has {}", has_a ? a : "nothing more",
                         has_b ? b : "nothing more");
    }
  }
}

}  // namespace

void agree(Assembly& assembly, comm::Workers& workers, const std::string& description) {
  if (workers.size() == 1) {
    return;
  }
  const std::string expected = assembly.broadcast(std::string_view(description));
  const std::vector<std::string> differences =
      assembly.gather(first_difference(description, expected));
  for (std::size_t r = 0; r < differences.size(); ++r) {
    if (!differences[r].empty()) {
      throw Error(ErrorCode::Mismatch,
                  fmt::format("workers differ: worker {} {}", r, differences[r]));
    }
  }
}

}  // namespace starling::train
