#include "starling/topology/schedule.h"

#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/suggestion.h"
#include "starling/topology/makers.h"

namespace starling::topology {
namespace {

constexpr std::string_view kFile = "file:";

constexpr std::array<ScheduleEntry, 11> kEntries = {{
    {"complete", "everybody averages at every step", make_complete},
    {"ring", "pairs along a ring, alternating left and right", make_ring},
    {"ring-neighbours", "both ring neighbours at weight 1/3", make_ring_neighbours},
    {"exponential", "one peer at distance 1, 2, 4, …", make_exponential},
    {"push", "directed: send to --peers K at distances 2^t …", make_push},
    {"aer", "alternating exponential ring: nodes of --per-node L, alone or two by two", make_aer},
    {"groups", "rotating groups of at most --group-size S", make_groups},
    {"fixed-groups", "the same groups of at most --group-size S at every step", make_fixed_groups},
    {"pairs", "random pairs, drawn from --seed", make_pairs},
    {"base-k", "exact for any number of workers with at most --peers K", make_base_k},
    {"file:PATH", "your own, from a JSON file", nullptr},
}};

[[noreturn]] void refuse(std::string_view name) {
  std::vector<std::string_view> names;
  std::string all;
  for (const ScheduleEntry& entry : kEntries) {
    names.push_back(entry.name);
    all += fmt::format("{}{}", all.empty() ? "" : ", ", entry.name);
  }
  throw Error(ErrorCode::Input, fmt::format("unknown schedule '{}': did you mean '{}'? Known: {}",
                                            name, nearest(name, names), all));
}

std::unique_ptr<Schedule> make_plain(std::string_view name, const ScheduleOptions& options) {
  if (name.starts_with(kFile)) {
    return make_from_file(std::string(name.substr(kFile.size())), options);
  }
  for (const ScheduleEntry& entry : kEntries) {
    if (entry.name == name && entry.make != nullptr) {
      return entry.make(options);
    }
  }
  refuse(name);
}

}  // namespace

std::optional<double> Schedule::expected_factor(const View&) const { return std::nullopt; }

std::uint32_t default_group_size(std::uint32_t workers) {
  if (std::has_single_bit(workers)) {
    return std::uint32_t{1} << ((std::bit_width(workers) - 1 + 1) / 2);
  }
  return static_cast<std::uint32_t>(std::ceil(std::sqrt(workers)));
}

std::span<const ScheduleEntry> schedule_entries() { return kEntries; }

std::unique_ptr<Schedule> make_schedule(std::string_view name, const ScheduleOptions& options) {
  require(options.workers > 0, "0 workers: a schedule needs at least 1");
  require(options.workers <= 1u << 24, "{} workers: at most {} are supported", options.workers,
          1u << 24);
  require(options.per_node > 0, "0 workers per node: at least 1 is needed");
  auto schedule = make_plain(name, options);
  if (!options.sync_period) {
    return schedule;
  }
  require(*options.sync_period > 0, "a sync period of 0 steps: at least 1 is needed");
  return make_synced(std::move(schedule), *options.sync_period);
}

}  // namespace starling::topology
