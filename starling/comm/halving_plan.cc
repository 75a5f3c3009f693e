#include "starling/comm/halving_plan.h"

#include <utility>

namespace starling::comm {
namespace {

std::size_t holder(std::size_t count, std::size_t block, std::size_t level, std::size_t portion) {
  while (level > 0) {
    --level;
    block = 2 * block + (portion & 1);
    block = (block << level) < count ? block : block - 1;
    portion >>= 1;
  }
  return block;
}

}  // namespace

std::vector<std::vector<Trade>> halving_plan(std::size_t count, std::size_t self) {
  std::vector<std::vector<Trade>> plan;
  std::vector<std::size_t> held = {0};
  for (std::size_t level = 0; (std::size_t{1} << level) < count; ++level) {
    const std::size_t block = self >> level;
    const std::size_t sibling = block ^ 1;
    const bool alone = (sibling << level) >= count;
    const std::size_t side = block & 1;
    std::vector<std::size_t> kept;
    plan.emplace_back();
    for (std::size_t p : held) {
      kept.push_back(2 * p + side);
      if (alone) {
        kept.push_back(2 * p + 1 - side);
        continue;
      }
      plan.back().push_back({.partner = holder(count, sibling, level, p),
                             .portion = p,
                             .keep = 2 * p + side,
                             .give = 2 * p + 1 - side});
    }
    held = std::move(kept);
  }
  return plan;
}

}  // namespace starling::comm
