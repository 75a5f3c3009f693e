// What all living workers do together beside their rounds: they tell each other, average, and go on
// with those who are left if one is lost meanwhile. Each call is a sync of rounds of their own
// (comm/rounds.h): if one worker has its result, all who are left have the same. Collective:
// everyone calls the same, in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/comm/buffer.h"
#include "starling/comm/workers.h"

namespace starling::train {

class Assembly {
 public:
  // Assemblies of the same workers have a series each (Workers::next_series()).
  Assembly(comm::Workers& workers, std::uint64_t series);
  // Leaves: the others meet without this worker.
  ~Assembly();
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;

  // The bytes of the lowest living rank, on everyone.
  void broadcast(std::span<std::byte> bytes);
  // As above, of any length.
  std::string broadcast(std::string_view text);
  // into = the sum of everyone's `from`, in rank order; how many took part. Pool memory is summed
  // in place.
  std::size_t sum(comm::ConstBuffer from, comm::Buffer into);
  double sum(double value);
  // Everyone's text, by rank, cut to kLongest bytes; nothing of those who are lost.
  static constexpr std::size_t kLongest = 400;
  std::vector<std::string> gather(std::string_view text);

 private:
  class Table;
  enum class Who : std::uint8_t { Everyone, TheLowest };
  std::size_t sum(comm::ConstBuffer from, comm::Buffer into, Who contributes);

  comm::Workers& workers_;
  std::unique_ptr<Table> table_;  // lives on the engine's thread
};

}  // namespace starling::train
