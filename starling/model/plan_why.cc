#include "starling/model/plan_why.h"

#include <fmt/format.h>

#include <algorithm>

#include "starling/base/units.h"

namespace starling::model {
namespace {

std::string percent(double part) { return fmt::format("{:.0f} %", 100 * part); }

std::string waits(const Choice& choice) {
  const Prediction& p = choice.prediction;
  return fmt::format("{} of its step waits for late workers, {} for exchanges",
                     percent(p.waiting.straggler / p.step), percent(p.waiting.exchange / p.step));
}

std::string why_not_another(const Plan& plan) {
  const Choice& rival =
      *std::find_if(plan.choices.begin(), plan.choices.end(),
                    [](const Choice& choice) { return choice.candidate.advisable; });
  if (&rival == &plan.choices[plan.all_reduce]) {
    return fmt::format("nothing{} is predicted to be faster, and no model is more exact",
                       plan.all_reduce == 0 ? "" : " whose quality is shown to hold");
  }
  return fmt::format(
      "{} would be {:.1f} % faster at best: not worth models that differ from each other",
      title(rival.candidate), 100 * (rival.speed_up - 1));
}

void add_reasons(const Plan& plan, std::vector<std::string>& why) {
  const Choice& base = plan.choices[plan.all_reduce];
  const Choice& best = plan.choices[plan.recommended];
  const topology::Algorithm& row = *best.candidate.algorithm;
  why.push_back(fmt::format("{}: {}", title(best.candidate), waits(best)));
  if (row.one_step_behind) {
    why.push_back(fmt::format("{} of its exchanges are hidden behind the next step",
                              percent(best.prediction.overlap)));
  }
  if (row.trigger != topology::Trigger::AllArrived) {
    why.push_back(
        fmt::format("its rounds do not wait for late workers: {} of what they average is "
                    "older than the round",
                    percent(best.prediction.stale)));
  }
  if (plan.per_node > 1 && best.bytes_per_node < base.bytes_per_node) {
    why.push_back(fmt::format("a node's card carries {} per step, {} for all-reduce",
                              bytes_text(best.bytes_per_node), bytes_text(base.bytes_per_node)));
  }
  if (best.candidate.sync_period) {
    why.push_back(
        fmt::format("every {}th step waits for everybody: a longer --sync-period is faster, but "
                    "models differ more; that is a choice of quality, and was not searched",
                    *best.candidate.sync_period));
  }
}

}  // namespace

std::vector<std::string> why(const Plan& plan) {
  const Choice& best = plan.choices[plan.recommended];
  std::vector<std::string> lines = {
      fmt::format("all-reduce: {}", waits(plan.choices[plan.all_reduce]))};
  if (plan.recommended == plan.all_reduce) {
    lines.push_back(why_not_another(plan));
  } else {
    add_reasons(plan, lines);
  }
  const Choice& fastest = plan.choices.front();
  if (!fastest.candidate.advisable && fastest.speed_up > (1 + kTie) * best.speed_up) {
    lines.push_back(
        fmt::format("{} is predicted {:.2f} times as fast as all-reduce, but that its quality "
                    "holds is not shown (docs/results.md)",
                    title(fastest.candidate), fastest.speed_up));
  }
  return lines;
}

}  // namespace starling::model
