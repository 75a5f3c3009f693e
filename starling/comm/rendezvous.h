// The workers of a job before they can talk: everyone brings some bytes and gets everyone's.
// Used for the few exchanges of start-up, then destroyed; nothing of it must survive. Used by one
// thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "starling/base/time.h"
#include "starling/base/units.h"
#include "starling/comm/job.h"
#include "starling/comm/packing.h"

namespace starling::comm {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual Rank rank() const = 0;
  virtual std::size_t size() const = 0;
  // How the workers met, for the user: "starling run", "torchrun", "PMIx (srun)", …
  virtual std::string how() const = 0;
  // The secret of the job, the same on all workers: the launcher's, or drawn by worker 0.
  virtual std::string secret() const = 0;

  // What everyone brought, by rank. All workers call this equally often. Throws Error{Input} for
  // more than kLargestBrought bytes, Error{Stalled} naming the workers that did not come in time
  // (PMIx names none), Error{Lost} naming one that ended meanwhile. After an error it is of
  // no use.
  virtual std::vector<Bytestring> exchange(std::span<const std::byte> own) = 0;
};

// Returns when all workers are there. `patience`: how long to wait for the others, here and in each
// exchange. Throws Error{Input} for a port in use, another job at the address, a wrong secret,
// workers of different versions or a module that is not installed; Error{Stalled}, Error{Lost} as
// exchange().
std::unique_ptr<Rendezvous> meet(const Job& job, Duration patience);

}  // namespace starling::comm
