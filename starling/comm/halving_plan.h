// Who trades which portion with whom in a distance-doubling reduce-scatter (all_reduce_halving.cc).
//
// Level l joins blocks of 2^l neighbours. Of every portion that a block has summed, the left block
// goes on with the first half and the right block with the second. Which member of a block holds a
// portion: the portion's last bit says which child block, the remaining bits which member of it.
// Where the right child does not exist (k is not a power of two) the left one keeps both halves.
#pragma once

#include <cstddef>
#include <vector>

namespace starling::comm {

// Portion p before level l is the p-th of 2^l equal parts; its halves are 2p and 2p + 1 of 2^(l+1).
struct Trade {
  std::size_t partner = 0;
  std::size_t portion = 0;  // held before the level by both
  std::size_t keep = 0;     // the half that this member goes on with
  std::size_t give = 0;     // the half that it sends away
};

// By level, what member `self` of `count` trades.
std::vector<std::vector<Trade>> halving_plan(std::size_t count, std::size_t self);

}  // namespace starling::comm
