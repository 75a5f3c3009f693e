#include "starling/model/profile.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "starling/base/error.h"
#include "starling/topology/schedule.h"

namespace starling::model {
namespace {

using nlohmann::ordered_json;

ordered_json json_or_null(const std::optional<std::uint32_t>& count) {
  return count ? ordered_json(*count) : ordered_json();
}

ordered_json json_of(const Link& link) {
  return {{"latency", link.latency}, {"bandwidth", link.bandwidth}};
}

ordered_json json_of(const Pattern& pattern) {
  return {{"schedule", pattern.schedule},
          {"group_size", json_or_null(pattern.group_size)},
          {"peers", pattern.peers},
          {"push", pattern.push}};
}

ordered_json json_of(const ExchangePhase& phase) {
  ordered_json json = json_of(phase.pattern);
  json["phase"] = phase.phase;
  json["samples"] = ordered_json::array();
  for (const ExchangeSample& sample : phase.samples) {
    json["samples"].push_back({{"bytes", sample.bytes}, {"seconds", sample.seconds}});
  }
  return json;
}

ordered_json json_of(const Trained& trained) {
  ordered_json json = {{"algorithm", trained.algorithm}};
  json.update(json_of(trained.pattern));
  json["sync_period"] = json_or_null(trained.sync_period);
  json["bucket_bytes"] = trained.bucket_bytes;
  json["steps"] = trained.steps;
  json["step_seconds"] = trained.step;
  json["interval"] = trained.interval;
  return json;
}

}  // namespace

double update_seconds(const Profile& profile, const topology::Algorithm& row) {
  using topology::Payload;
  const bool is_held =
      row.payload == Payload::HeldModel || row.missing == topology::Missing::LatestModel;
  return is_held                             ? profile.updates.held
         : row.payload == Payload::Gradients ? profile.updates.gradients
         : row.one_step_behind               ? profile.updates.behind
                                             : profile.updates.parameters;
}

std::int64_t measured_phases(const Pattern& pattern, std::uint32_t workers,
                             std::uint32_t per_node) {
  constexpr std::int64_t kMost = 16;
  const auto schedule = topology::make_schedule(pattern.schedule, {.workers = workers,
                                                                   .per_node = per_node,
                                                                   .group_size = pattern.group_size,
                                                                   .peers = pattern.peers});
  return std::min(kMost, schedule->period(topology::View::full(workers)).value_or(1));
}

void write_profile(const Profile& profile, const std::filesystem::path& file) {
  ordered_json json = {{"format", kProfileFormat},
                       {"workers", profile.workers},
                       {"per_node", profile.per_node},
                       {"launcher", profile.launcher},
                       {"transport", profile.transport},
                       {"model", profile.model},
                       {"parameters", profile.parameters},
                       {"bytes", profile.bytes},
                       {"updates",
                        {{"gradients", profile.updates.gradients},
                         {"parameters", profile.updates.parameters},
                         {"behind", profile.updates.behind},
                         {"held", profile.updates.held}}},
                       {"network", json_of(profile.network)},
                       {"local", json_of(profile.local)}};
  json["pieces"] = ordered_json::array();
  for (std::size_t i = 0; i < profile.ends.size(); ++i) {
    json["pieces"].push_back({{"end", profile.ends[i]}, {"share", profile.shares[i]}});
  }
  json["exchanges"] = ordered_json::array();
  for (const ExchangePhase& phase : profile.exchanges) {
    json["exchanges"].push_back(json_of(phase));
  }
  json["trained"] = ordered_json::array();
  for (const Trained& run : profile.trained) {
    json["trained"].push_back(json_of(run));
  }
  json["compute"] = ordered_json::array();
  for (const auto& worker : profile.compute) {
    ordered_json steps = ordered_json::array();
    for (const ComputeTime& step : worker) {
      steps.push_back({seconds(step.forward), seconds(step.backward)});
    }
    json["compute"].push_back(std::move(steps));
  }
  std::ofstream stream(file);
  stream << json.dump(1) << '\n';
  stream.close();
  require(!stream.fail(), "cannot write {}", file.string());
}

}  // namespace starling::model
