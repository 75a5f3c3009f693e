#include "starling/tool/verdict.h"

namespace starling::tool {

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view kNames[] = {"better", "equal", "worse", "undecided", "none"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Verdict judge(const std::optional<Interval>& difference, double margin) {
  if (!difference) {
    return Verdict::None;
  }
  if (difference->low >= -margin && difference->high <= margin) {
    return Verdict::Equal;
  }
  if (difference->low > 0) {
    return Verdict::Better;
  }
  return difference->high < 0 ? Verdict::Worse : Verdict::Undecided;
}

std::string_view name_of(Pace pace) {
  constexpr std::string_view kNames[] = {"sooner", "later", "undecided", "none"};
  return kNames[static_cast<std::size_t>(pace)];
}

Pace judge_pace(const std::optional<Interval>& ratio) {
  if (!ratio) {
    return Pace::None;
  }
  if (ratio->low > 1) {
    return Pace::Sooner;
  }
  return ratio->high < 1 ? Pace::Later : Pace::Undecided;
}

}  // namespace starling::tool
