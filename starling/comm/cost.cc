#include "starling/comm/cost.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/halving_plan.h"
#include "starling/comm/letter.h"
#include "starling/comm/segments.h"

namespace starling::comm {
namespace {

std::size_t hops(std::size_t members) {
  std::size_t levels = 0;
  while ((std::size_t{1} << levels) < members) {
    ++levels;
  }
  return levels;
}

double hop(double bytes, Link link) {
  // A small message carries its header along.
  const double size = bytes <= static_cast<double>(kSmall) ? bytes + sizeof(Header) : bytes;
  return link.latency + size / link.bandwidth;
}

// Up to so many members, k² messages are followed one by one.
constexpr std::size_t kFollowed = 128;

// Where members do not all do the same, because their number is not a power of two, there is no
// formula; but the cards can be followed message by message, in the order in which these leave.
class Cards {
 public:
  // What a member does: stage by stage it sends, and goes on when so many messages of the stage
  // have come to it.
  struct Stage {
    std::vector<std::pair<std::size_t, double>> sends;  // to whom, how many bytes
    std::size_t awaited = 0;
  };
  using Program = std::vector<Stage>;

  Cards(std::vector<Program> programs, Link link)
      : programs_(std::move(programs)), link_(link), members_(programs_.size()) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      members_[i].came.resize(programs_[i].size());
      enter(i, 0, 0);
    }
  }

  Cost cost() {
    double seconds = 0;
    while (!leaving_.empty()) {
      const Message m = leaving_.top();
      leaving_.pop();
      Member& to = members_[m.to];
      to.in_free = std::max(m.leaves + link_.latency, to.in_free) + m.time;
      seconds = std::max(seconds, to.in_free);
      Came& came = to.came[m.stage];
      ++came.count;
      came.last = std::max(came.last, to.in_free);
      advance(m.to);
    }
    Cost result{.seconds = seconds, .bytes = 0};
    for (const Member& member : members_) {
      result.bytes = std::max(result.bytes, member.sent);
    }
    return result;
  }

 private:
  struct Message {
    double leaves;
    double time;
    std::size_t to;
    std::size_t stage;
    std::size_t order;  // of sending, where times are equal
    bool operator<(const Message& other) const {
      return leaves != other.leaves ? leaves > other.leaves : order > other.order;
    }
  };
  struct Came {
    std::size_t count = 0;
    double last = 0;
  };
  struct Member {
    double out_free = 0;
    double in_free = 0;
    double sent = 0;
    double entered = 0;
    std::size_t stage = 0;
    std::vector<Came> came;
  };

  void enter(std::size_t i, std::size_t stage, double now) {
    Member& member = members_[i];
    member.stage = stage;
    member.entered = now;
    if (stage == programs_[i].size()) {
      return;
    }
    for (const auto& [to, bytes] : programs_[i][stage].sends) {
      const double leaves = std::max(now, member.out_free);
      const double time = hop(bytes, link_) - link_.latency;
      member.out_free = leaves + time;
      member.sent += bytes;
      leaving_.push({leaves, time, to, stage, order_++});
    }
    advance(i);
  }
  void advance(std::size_t i) {
    const Member& member = members_[i];
    if (member.stage < programs_[i].size() &&
        member.came[member.stage].count == programs_[i][member.stage].awaited) {
      enter(i, member.stage + 1, std::max(member.entered, member.came[member.stage].last));
    }
  }

  std::vector<Program> programs_;
  Link link_;
  std::vector<Member> members_;
  std::priority_queue<Message> leaving_;
  std::size_t order_ = 0;
};

// broadcast.cc: member v hears from v without its highest bit, then tells v + 2^i for all 2^i above
// it. All of it is one stage for the messages; the root has nothing to hear.
Cost tree_cost(std::size_t k, double bytes, Link link) {
  std::vector<Cards::Program> programs(k, Cards::Program(hops(k) + 1));
  for (std::size_t v = 0; v < k; ++v) {
    std::size_t depth = 0;
    std::size_t reach = 1;
    for (std::size_t bits = v; bits > 0; bits &= bits - 1) {
      ++depth;
    }
    while (reach <= v) {
      reach *= 2;
    }
    if (depth > 0) {
      programs[v][depth - 1].awaited = 1;
    }
    for (; v + reach < k; reach *= 2) {
      programs[v][depth].sends.emplace_back(v + reach, bytes);
    }
  }
  return Cards(std::move(programs), link).cost();
}

// all_reduce_doubling.cc: a short block serves the whole sibling block.
Cost doubling_cost(std::size_t k, double bytes, Link link) {
  std::vector<Cards::Program> programs(k);
  for (std::size_t width = 1; width < k; width *= 2) {
    for (std::size_t i = 0; i < k; ++i) {
      const std::size_t own = i / width * width;
      const std::size_t sibling = (i / width ^ 1) * width;
      const std::size_t size = std::min(width, k - own);
      Cards::Stage& stage = programs[i].emplace_back();
      stage.awaited = sibling < k ? 1 : 0;
      for (std::size_t j = i - own; j < width && sibling + j < k; j += size) {
        stage.sends.emplace_back(sibling + j, bytes);
      }
    }
  }
  return Cards(std::move(programs), link).cost();
}

// all_reduce_direct.cc, whole segments. These differ by 64 bytes, which matters when they are
// short.
Cost direct_cost(std::size_t k, double bytes, Link link, std::size_t shrink) {
  const Segments cut(static_cast<std::size_t>(bytes), k, 0);
  std::vector<Cards::Program> programs(k, Cards::Program(2));
  for (std::size_t i = 0; i < k; ++i) {
    const std::size_t own = cut.segment(i).size();
    for (std::size_t d = 1; d < k; ++d) {
      const std::size_t peer = (i + d) % k;
      if (const std::size_t theirs = cut.segment(peer).size(); theirs > 0) {
        programs[i][0].sends.emplace_back(
            peer, static_cast<double>(theirs) / static_cast<double>(shrink));
        ++programs[i][1].awaited;
      }
      if (own > 0) {
        programs[i][1].sends.emplace_back(peer, static_cast<double>(own));
        ++programs[i][0].awaited;
      }
    }
  }
  return Cards(std::move(programs), link).cost();
}

// all_reduce_halving.cc: members of a short block hold several portions.
Cost halving_cost(std::size_t k, double bytes, Link link) {
  std::vector<Cards::Program> programs(k);
  for (std::size_t i = 0; i < k; ++i) {
    const auto plan = halving_plan(k, i);
    for (std::size_t step = 0; step < 2 * plan.size(); ++step) {
      const std::size_t level = step < plan.size() ? step : 2 * plan.size() - 1 - step;
      Cards::Stage& stage = programs[i].emplace_back();
      stage.awaited = plan[level].size();
      for (const Trade& trade : plan[level]) {
        stage.sends.emplace_back(trade.partner,
                                 bytes / static_cast<double>(std::size_t{2} << level));
      }
    }
  }
  return Cards(std::move(programs), link).cost();
}

}  // namespace

Cost barrier_cost(std::size_t members, Link link) {
  return {.seconds = static_cast<double>(hops(members)) * hop(0, link), .bytes = 0};
}

Cost broadcast_cost(std::size_t members, double bytes, std::size_t chunk, Link link) {
  if (members == 1) {
    return {};
  }
  if (bytes <= static_cast<double>(kSmall) || members == 2) {
    return tree_cost(members, bytes, link);
  }
  // The root sends everything once; the owner of its last piece then still has to pass that on to
  // k - 2 others.
  const Segments cut(static_cast<std::size_t>(bytes), members - 1, chunk);
  const double pieces = static_cast<double>((members - 1) * cut.chunks());
  const double sending = pieces * (hop(bytes / pieces, link) - link.latency);
  const double last = static_cast<double>(cut.chunk(members - 2, cut.chunks() - 1).size());
  const double passing = static_cast<double>(members - 2) * (hop(last, link) - link.latency);
  return {.seconds = 2 * link.latency + sending + passing, .bytes = bytes};
}

Cost all_reduce_cost(AllReduce algorithm, std::size_t members, double bytes, Link link,
                     std::size_t shrink) {
  if (members == 1) {
    return {};
  }
  const double k = static_cast<double>(members);
  const double contribution = bytes / static_cast<double>(shrink);
  switch (algorithm) {
    case AllReduce::Auto:
      return all_reduce_cost(choose(members, static_cast<std::size_t>(bytes), shrink), members,
                             bytes, link, shrink);
    case AllReduce::Doubling:
      return doubling_cost(members, bytes, link);
    case AllReduce::Direct:
      if (members <= kFollowed) {
        return direct_cost(members, bytes, link, shrink);
      }
      return {.seconds = 2 * link.latency + (k - 1) * (hop(contribution / k, link) +
                                                       hop(bytes / k, link) - 2 * link.latency),
              .bytes = (k - 1) / k * (contribution + bytes)};
    case AllReduce::Halving:
      return halving_cost(members, bytes, link);
    case AllReduce::Shared:
      break;  // nothing travels but small messages, and memory takes no time on a virtual network
    case AllReduce::Ring:
      return {.seconds = 2 * (k - 1) * hop(bytes / k, link), .bytes = 2 * (k - 1) / k * bytes};
    case AllReduce::Gather:
      return exchange_cost(members - 1, contribution, link);
  }
  check(false, "no closed form for algorithm {}", static_cast<int>(algorithm));
  return {};
}

Cost push_cost(std::size_t neighbours, double bytes, Link link) {
  // Shares travel ahead of the data: two numbers to each neighbour.
  Cost cost = exchange_cost(neighbours, bytes, link);
  const double share = 2 * sizeof(double);
  cost.seconds += static_cast<double>(neighbours) * (hop(share, link) - link.latency);
  cost.bytes += static_cast<double>(neighbours) * share;
  return cost;
}

Cost exchange_cost(std::size_t neighbours, double bytes, Link link) {
  if (neighbours == 0) {
    return {};
  }
  const double n = static_cast<double>(neighbours);
  return {.seconds = link.latency + n * (hop(bytes, link) - link.latency), .bytes = n * bytes};
}

}  // namespace starling::comm
