// How fast workers come to agree when nothing is added: exact expectations for an i.i.d. start.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "starling/topology/mixing.h"

namespace starling::topology {

// The expected fraction of the squared deviation from the mean that is left after 0, 1, …, k of the
// rounds: ‖(I − J) W_r … W_1‖² / (n − 1), Frobenius. O(workers² · rounds) time for sparse rounds,
// O(workers) memory. A lone worker has 0 from the start.
std::vector<double> deviation_left(std::span<const Mixing> rounds);

// Number of rounds after which the deviation is exactly 0, if it is within these; 0 for a lone
// worker. Decided in floating point by a sudden drop (see the source), on a few random vectors.
std::optional<std::int64_t> rounds_to_exact(std::span<const Mixing> rounds);

}  // namespace starling::topology
