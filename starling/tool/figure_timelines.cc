// Two rows of the table of algorithms over time, as the recurrences record them: per worker a lane
// of computation and a lane of exchanges.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "starling/model/predict.h"
#include "starling/model/table_costs.h"
#include "starling/tool/model_figures.h"
#include "starling/tool/svg.h"

namespace starling::tool {
namespace {

using model::TaskKind;
using model::TaskTime;

constexpr std::uint32_t kWorkers = 3;
constexpr std::size_t kBuckets = 3;
constexpr std::uint64_t kSteps = 3;
constexpr double kExchange = 0.6;  // of all buckets
constexpr double kUpdate = 0.05;   // of one

constexpr double kWidth = 1040;
constexpr double kLeft = 90;
constexpr double kRight = 20;
constexpr double kLane = 22;
constexpr double kWorkerHeight = 2 * kLane + 12;
constexpr double kPanelHeight = kWorkers * kWorkerHeight + 70;

// Worker 1 is late in step 0, worker 2 in step 1.
model::StepTime time_of(Rank worker, Step step) {
  constexpr std::array<std::array<double, kWorkers>, kSteps> kTimes = {
      {{1.0, 1.4, 0.9}, {0.9, 1.0, 1.5}, {1.1, 0.9, 1.0}}};
  const double whole = kTimes[static_cast<std::size_t>(step.value)][worker.index()];
  return {.forward = whole / 3, .backward = whole * 2 / 3};
}

std::vector<TaskTime> tasks_of(const char* algorithm) {
  const auto schedule = topology::make_schedule("complete", {.workers = kWorkers});
  const model::TableCosts costs = model::equal_costs(kWorkers, kExchange, kBuckets);
  std::vector<TaskTime> tasks;
  model::Setting setting;
  setting.algorithm = &topology::find_algorithm(algorithm);
  setting.schedule = schedule.get();
  setting.workers = kWorkers;
  setting.times = time_of;
  setting.costs = &costs;
  setting.buckets = kBuckets;
  setting.updates = std::vector<double>(kBuckets, kUpdate);
  setting.steps = kSteps;
  setting.record = [&](const TaskTime& task) { tasks.push_back(task); };
  model::predict(setting);
  return tasks;
}

struct Box {
  const char* name;
  const char* fill;
};
Box box_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::Forward:
      return {"F", "#cfe3f2"};
    case TaskKind::Backward:
      return {"B", "#9ecae1"};
    case TaskKind::Exchange:
      return {"C", "#fdd0a2"};
    case TaskKind::Update:
      return {"U", "#a1d99b"};
    default:
      return {"", "url(#waits)"};
  }
}

std::string draw_task(const TaskTime& task, double scale) {
  const Box box = box_of(task.kind);
  const double x = kLeft + task.start * scale;
  const double width = (task.end - task.start) * scale;
  const double y =
      task.worker.value * kWorkerHeight + (task.kind == TaskKind::Exchange ? kLane + 2 : 0);
  std::string out = fmt::format(
      "<rect class=\"box\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "fill=\"{}\"/>\n",
      x, y, width, kLane, box.fill);
  const bool numbered = task.kind == TaskKind::Backward || task.kind == TaskKind::Exchange;
  if (width > 16 && *box.name != 0) {
    out += text_at(x + width / 2, y + kLane / 2 + 4, "middle",
                   numbered ? fmt::format("{}{}", box.name, task.bucket + 1) : box.name);
  }
  return out;
}

double last_end(const std::vector<TaskTime>& tasks) {
  double last = 0;
  for (const TaskTime& task : tasks) {
    last = std::max(last, task.end);
  }
  return last;
}

std::string draw_panel(const char* title, const std::vector<TaskTime>& tasks, double scale,
                       double y) {
  std::string out = fmt::format("<g transform=\"translate(0,{:.1f})\">\n", y);
  out += text_at(kLeft, -8, "start", title, " class=\"title\"");
  for (std::uint32_t i = 0; i < kWorkers; ++i) {
    const double top = i * kWorkerHeight;
    out += text_at(kLeft - 8, top + 15, "end", fmt::format("worker {}", i));
    out += text_at(kLeft - 8, top + kLane + 17, "end", "exchange", " fill=\"#666\"");
  }
  for (const TaskTime& task : tasks) {
    out += draw_task(task, scale);
  }
  const double bottom = kWorkers * kWorkerHeight;
  double time = 0;
  for (; kLeft + time * scale <= kWidth - kRight; time += 0.5) {
    const double x = kLeft + time * scale;
    out += fmt::format("<path class=\"axis\" d=\"M{:.1f},{:.1f}v5\"/>\n", x, bottom);
    out += text_at(x, bottom + 18, "middle", fmt::format("{:.1f}", time));
  }
  out += fmt::format("<path class=\"axis\" d=\"M{:.1f},{:.1f}H{:.1f}\"/>\n", kLeft, bottom,
                     kWidth - kRight);
  return out + "</g>\n";
}

}  // namespace

std::string draw_timelines() {
  const std::vector<TaskTime> all = tasks_of("all-reduce");
  const std::vector<TaskTime> behind = tasks_of("dadam");
  const double scale = (kWidth - kLeft - kRight) / std::max(last_end(all), last_end(behind));
  std::string body =
      "<pattern id=\"waits\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
      "<path d=\"M0,6L6,0\" stroke=\"#999\"/></pattern>\n";
  body +=
      draw_panel("all-reduce: gradients, exchanged inside the same backward pass", all, scale, 64);
  body +=
      draw_panel("one step behind: parameters of the last step, exchanged behind all of this one",
                 behind, scale, 64 + kPanelHeight);
  body +=
      text_at(kLeft, 64 + 2 * kPanelHeight - 22, "start",
              "F forward, B1 … B3 backward by bucket, C1 … C3 exchange, U update (without letter: "
              "of one bucket); hatched: waits. Time in mean steps.");
  return svg_of(kWidth, 64 + 2 * kPanelHeight, "Three steps of three workers", body,
                ".box{stroke:#444;stroke-width:0.6}");
}

}  // namespace starling::tool
