// What one step behind gains from each of its three factors, with the other two switched off.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "starling/model/link_costs.h"
#include "starling/model/predict.h"
#include "starling/model/table_costs.h"
#include "starling/tool/model_figures.h"
#include "starling/tool/quality_plot.h"

namespace starling::tool {
namespace {

constexpr std::size_t kBuckets = 4;
constexpr std::uint64_t kSeed = 1;
constexpr const char* kStep = "time of a step";

struct Line {
  const char* name;
  const char* algorithm;
  const char* schedule;
  bool overlap = true;
};

struct Place {
  std::uint32_t workers = 16;
  std::uint32_t per_node = 4;
  const char* times = "constant:1";
  std::uint64_t steps = 400;
};

double step_of(const Line& line, const Place& place, const model::ExchangeCosts& costs) {
  const auto schedule = topology::make_schedule(
      line.schedule, {.workers = place.workers, .per_node = place.per_node});
  model::Setting setting;
  setting.algorithm = &topology::find_algorithm(line.algorithm);
  setting.schedule = schedule.get();
  setting.workers = place.workers;
  setting.times = model::times_of(ComputeTimes(place.times, kSeed));
  setting.costs = &costs;
  setting.buckets = kBuckets;
  setting.overlap = line.overlap;
  setting.steps = place.steps;
  return model::predict(setting).step;
}

constexpr Line kAllReduce{"all-reduce", "all-reduce", "complete"};
constexpr Line kComplete{"one step behind, complete", "dadam", "complete"};
constexpr Line kAer{"one step behind, aer", "dadam", "aer"};
constexpr Line kExponential{"one step behind, exponential", "dadam", "exponential"};
constexpr Line kRing{"one step behind, ring", "dadam", "ring"};

std::string draw(const char* title, PlotPanel panel) {
  panel.from_start = true;
  return draw_plot(title, {{std::move(panel)}}, "time in mean computations of a step");
}

}  // namespace

std::string draw_overlap() {
  const Line behind{"one step behind", "dadam", "complete"};
  const Line inside{"the same without overlap", "dadam", "complete", false};
  PlotPanel panel{.title = "equal links, no variance, 4 buckets",
                  .x_title = "exchange, c / T",
                  .y_title = kStep};
  for (const Line& line : {kAllReduce, behind, inside}) {
    Points points;
    for (int i = 0; i <= 30; ++i) {
      const double c = 0.1 * i;
      const Place place{.workers = 8};
      points.emplace_back(c, step_of(line, place, model::equal_costs(8, c, kBuckets)));
    }
    panel.curves.push_back({.name = line.name, .seeds = {std::move(points)}});
  }
  return draw("Overlap alone", std::move(panel));
}

std::string draw_links() {
  PlotPanel panel{.title = "16 workers, nodes of 4 that share a card, no variance",
                  .x_title = "ring of all through the cards, c / T",
                  .y_title = kStep};
  for (const Line& line : {kAllReduce, kComplete, kExponential, kRing, kAer}) {
    Points points;
    for (int i = 1; i <= 30; ++i) {
      const double c = 0.1 * i;
      // One bucket of 1 MB; a ring of 16 sends 1.875 of it through each card.
      const double bytes = 1e6;
      const model::Links links{.bandwidth = 1.875 * bytes * kBuckets / c,
                               .local_bandwidth = 1.875 * bytes * kBuckets / (0.1 * c),
                               .per_node = 4};
      const std::vector<Bytes> buckets(kBuckets, Bytes{static_cast<std::uint64_t>(bytes)});
      points.emplace_back(c, step_of(line, {}, model::LinkCosts(links, buckets)));
    }
    panel.curves.push_back({.name = line.name, .seeds = {std::move(points)}});
  }
  return draw("Heterogeneous links", std::move(panel));
}

std::string draw_variance() {
  PlotPanel panel{.title = "exchanges without cost, normal times, variance 0.0134",
                  .x_title = "log2 of workers",
                  .y_title = kStep};
  for (const Line& line : {kAllReduce, kComplete, kExponential, kRing, kAer}) {
    Points points;
    for (std::uint32_t workers = 8; workers <= 256; workers *= 2) {
      const Place place{.workers = workers, .times = "normal:1,0.0134", .steps = 2000};
      points.emplace_back(std::log2(workers),
                          step_of(line, place, model::equal_costs(workers, 0, kBuckets)));
    }
    panel.curves.push_back({.name = line.name, .seeds = {std::move(points)}});
  }
  return draw("Variance alone", std::move(panel));
}

}  // namespace starling::tool
