// What an operation does when nothing has moved for max_stall: it asks all members whether they
// have started, waits a moment for their engines to answer (applications need not), and fails with
// the names of those who have not. The worker it waits for directly is often only a victim itself.
#include <algorithm>
#include <string>

#include "starling/base/error.h"
#include "starling/comm/operation.h"

namespace starling::comm {
namespace {

std::string list(const std::vector<Rank>& ranks) {
  std::string text = ranks.size() == 1 ? "worker" : "workers";
  for (std::size_t i = 0; i < std::min<std::size_t>(ranks.size(), 8); ++i) {
    text += fmt::format("{} {}", i == 0 ? "" : ",", ranks[i]);
  }
  return ranks.size() > 8 ? text + fmt::format(" and {} more", ranks.size() - 8) : text;
}

}  // namespace

Time Operation::check_stall(Time now) {
  const EngineOptions& options = engine_.options();
  if (asked_ && last_progress_ > *asked_) {
    asked_.reset();
  }
  if (asked_) {
    if (now >= *asked_ + options.answer_time) {
      fail(std::make_exception_ptr(Error(ErrorCode::Stalled, stall_text())));
      return now + options.max_stall;
    }
    return *asked_ + options.answer_time;
  }
  if (now - last_progress_ < options.max_stall || failure_) {
    return std::max(last_progress_ + options.max_stall, now + Duration(1));
  }
  asked_ = now;
  for (std::size_t i = 0; i < count(); ++i) {
    if (i != self_) {
      peer(i).answered = peer(i).started = false;
      engine_.post(members_[i],
                   {.operation = id_, .signature = {}, .letter = Letter::Query, .slot = 0}, {});
    }
  }
  return now + options.answer_time;
}

void Operation::answered(Rank from, bool started) {
  Peer& member = peer(position_of(from));
  member.answered = true;
  member.started = started;
}

std::string Operation::stall_text() const {
  std::vector<Rank> silent;
  std::vector<Rank> absent;
  for (std::size_t i = 0; i < count(); ++i) {
    if (i != self_ && !peers_[i]->answered) {
      silent.push_back(members_[i]);
    } else if (i != self_ && !peers_[i]->started) {
      absent.push_back(members_[i]);
    }
  }
  std::string text = fmt::format("{} made no progress for {:.3g} s on worker {}", title(),
                                 seconds(engine_.now() - last_progress_), engine_.rank());
  if (waiting_.body != nullptr && waiting_.position) {
    text += fmt::format(", which awaits {} from worker {}", waiting_.what,
                        members_[*waiting_.position]);
  }
  if (!absent.empty()) {
    text += fmt::format("; {} did not start it", list(absent));
  }
  if (!silent.empty()) {
    text += fmt::format("; {} did not answer", list(silent));
  }
  return text;
}

}  // namespace starling::comm
