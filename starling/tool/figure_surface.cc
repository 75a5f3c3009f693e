// Speed-up of one step behind over all-reduce when both cost the same: 8 workers, complete, 4
// buckets; an update of a bucket takes 0.2 of a step's mean computation, or 0.2 all of them
// together.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "starling/model/closed_forms.h"
#include "starling/model/predict.h"
#include "starling/model/table_costs.h"
#include "starling/tool/model_figures.h"
#include "starling/tool/svg.h"

namespace starling::tool {
namespace {

constexpr std::uint32_t kWorkers = 8;
constexpr std::size_t kBuckets = 4;
constexpr std::uint64_t kSteps = 3000;
constexpr std::array<double, 13> kCosts = {0, 0.25, 0.5, 0.75, 0.9, 1, 1.2, 1.5, 1.8, 2, 2.5, 3, 5};
constexpr std::array<double, 8> kVariances = {0, 0.0017, 0.005, 0.01, 0.0134, 0.02, 0.03, 0.04};

constexpr double kCellWidth = 62;
constexpr double kCellHeight = 34;
constexpr double kLeft = 100;
constexpr double kTop = 70;
constexpr double kHeight = kCellHeight * kVariances.size();
constexpr double kWidth = kLeft + kCellWidth * kCosts.size() + 20;

// `update`: of all buckets.
double gain(double cost, double variance, double update) {
  const auto schedule = topology::make_schedule("complete", {.workers = kWorkers});
  const model::TableCosts costs = model::equal_costs(kWorkers, cost, kBuckets);
  model::Setting setting;
  setting.algorithm = &topology::find_algorithm("dadam");
  setting.schedule = schedule.get();
  setting.workers = kWorkers;
  setting.times = model::times_of(ComputeTimes(fmt::format("normal:1,{}", variance), 1));
  setting.costs = &costs;
  setting.buckets = kBuckets;
  setting.updates = std::vector<double>(kBuckets, update / kBuckets);
  setting.steps = variance == 0 ? 400 : kSteps;
  const std::vector<double> shares(kBuckets, 1.0 / kBuckets);
  const std::vector<double> c(kBuckets, cost / kBuckets);
  const double all =
      model::all_reduce_step(kWorkers, {.variance = variance, .shares = shares}, c, update);
  return all / model::predict(setting).step;
}

// From white (nothing gained) to dark blue.
std::string colour_of(double gain, double most) {
  const double part = most <= 1 ? 0 : std::max(0.0, (gain - 1) / (most - 1));
  const auto mix = [&](int from, int to) {
    return static_cast<int>(std::lround(from + part * (to - from)));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(255, 8), mix(255, 81), mix(255, 156));
}

using Gains = std::vector<std::vector<double>>;  // by variance, then cost

std::string cells(const Gains& gains, double bottom) {
  double most = 1;
  for (const auto& row : gains) {
    most = std::max(most, *std::max_element(row.begin(), row.end()));
  }
  std::string body;
  for (std::size_t row = 0; row < kVariances.size(); ++row) {
    const double y = bottom - kCellHeight * static_cast<double>(row + 1);
    body += text_at(kLeft - 8, y + kCellHeight / 2 + 4, "end", fmt::format("{}", kVariances[row]));
    for (std::size_t column = 0; column < kCosts.size(); ++column) {
      const double x = kLeft + kCellWidth * static_cast<double>(column);
      const double value = gains[row][column];
      body += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x,
          y, kCellWidth, kCellHeight, colour_of(value, most));
      body += text_at(x + kCellWidth / 2, y + kCellHeight / 2 + 4, "middle",
                      fmt::format("{:.2f}", value),
                      value - 1 > 0.55 * (most - 1) ? " fill=\"#fff\"" : "");
    }
  }
  return body;
}

std::string surface(double update, const char* title, double top) {
  Gains gains;
  for (const double variance : kVariances) {
    gains.emplace_back();
    for (const double cost : kCosts) {
      gains.back().push_back(gain(cost, variance, update));
    }
  }
  const double bottom = top + kHeight;
  std::string body = text_at(kLeft, top - 8, "start", title);
  body += cells(gains, bottom);
  for (std::size_t column = 0; column < kCosts.size(); ++column) {
    body += text_at(kLeft + kCellWidth * (static_cast<double>(column) + 0.5), bottom + 18, "middle",
                    fmt::format("{}", kCosts[column]));
  }
  body += text_at((kLeft + kWidth) / 2, bottom + 40, "middle", "exchange, c / T");
  body += fmt::format(
      "<text transform=\"translate(18,{:.1f}) rotate(-90)\" text-anchor=\"middle\">variance of T"
      "</text>\n",
      (top + bottom) / 2);
  return body;
}

}  // namespace

std::string draw_surface() {
  constexpr double kStride = kHeight + 85;
  const std::string body =
      surface(0.2 * kBuckets, "updates of 0.2 T per bucket, 0.8 T in all", kTop) +
      surface(0.2, "updates of 0.05 T per bucket, 0.2 T in all", kTop + kStride);
  return svg_of(kWidth, kTop + kStride + kHeight + 56,
                "Speed-up over all-reduce: 8 workers, complete, 4 buckets", body);
}

}  // namespace starling::tool
