// What several workers compute together, computed by one process with plain loops: no torch, no
// messages, no buckets, no vectors. The rows that chance has no part in (all-reduce, local SGD,
// D-PSGD, SGP, decentralized Adam, alone), and one worker's updates, for those that are replayed
// from a ledger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/train/case.h"

namespace starling::test {

// Of each worker's parameters after the last step (Fingerprint over them as registered).
std::vector<std::uint64_t> train_by_reference(const Case& c, std::size_t workers);

// One worker's optimizer on a flat model, parameters one after the other as registered.
class ReferenceUpdates {
 public:
  explicit ReferenceUpdates(const Case& c);
  ~ReferenceUpdates();
  ReferenceUpdates(ReferenceUpdates&&) noexcept;
  static std::size_t elements();
  // model += U(gradient at `at`), of the next step.
  void next(std::size_t worker, std::uint64_t step, std::span<const float> at,
            std::span<float> model);
  // The gradient at `at`; and model += U(gradient), of the next step.
  void gradient(std::size_t worker, std::uint64_t step, std::span<const float> at,
                std::span<float> gradient) const;
  void apply(std::span<const float> gradient, std::span<float> model);

 private:
  struct State;
  std::unique_ptr<State> state_;
};
float initial_of_flat(std::size_t element);
std::uint64_t fingerprint_of_flat(std::span<const float> model);

}  // namespace starling::test
