// The handshake of lifelines; used by lifeline.cc alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "starling/comm/lifeline.h"
#include "starling/comm/socket.h"

namespace starling::comm {

struct SetUpLine {
  Socket socket;
  Lifelines::Offset offset;
};

// By rank; the own entry is empty. Contract: the constructor of Lifelines.
std::vector<SetUpLine> set_up_lifelines(Rank self, std::span<const Lifelines::Peer> peers,
                                        int listener, const std::string& secret, Duration patience);

}  // namespace starling::comm
