// What a worker tells all others about itself when they meet.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "starling/comm/lifeline.h"
#include "starling/comm/pool.h"
#include "starling/comm/rendezvous.h"

namespace starling::comm {

struct Card {
  // Must be the same on all workers.
  std::string configuration;
  // The same on workers of one host, and only there.
  std::string host;
  std::string host_name;
  PoolAddress pool;
  LifelineAddress lifeline;
  Bytestring wire;

  Bytestring packed() const;
  static Card unpack(std::span<const std::byte> bytes);
};

// What tells this host from others: the running kernel, the network and the name that it has here.
// (Two containers with networks of their own count as two hosts.)
std::string own_host();
std::string own_host_name();

}  // namespace starling::comm
