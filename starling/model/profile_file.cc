#include <algorithm>
#include <fstream>
#include <sstream>

#include "starling/base/error.h"
#include "starling/base/time_words.h"
#include "starling/model/profile.h"
#include "starling/model/profile_place.h"
#include "starling/topology/schedule.h"

namespace starling::model {
namespace {

using nlohmann::ordered_json;

Link link_of(const ProfilePlace& place) {
  Link link{.latency = place.at("latency").time(), .bandwidth = place.at("bandwidth").number()};
  if (link.bandwidth == 0) {
    place.at("bandwidth").refuse("must be more than 0 bytes per second");
  }
  return link;
}

ComputeTime step_of(const ProfilePlace& place) {
  const auto times = place.list();
  if (times.size() != 2) {
    place.refuse("[forward, backward] in seconds is expected here");
  }
  return {duration(times[0].time()), duration(times[1].time())};
}

std::optional<std::uint32_t> count_or_null(const ProfilePlace& place) {
  return place.is_null() ? std::nullopt : std::optional(place.whole<std::uint32_t>(1));
}

Pattern pattern_of(const ProfilePlace& place) {
  return {.schedule = place.at("schedule").word(),
          .group_size = count_or_null(place.at("group_size")),
          .peers = place.at("peers").whole<std::uint32_t>(1),
          .push = place.at("push").flag()};
}

std::int64_t phases_of(const Profile& profile, const Pattern& pattern) {
  return std::count_if(profile.exchanges.begin(), profile.exchanges.end(),
                       [&](const ExchangePhase& phase) { return phase.pattern == pattern; });
}

// Requires: exchanges have been read.
Trained trained_of(const ProfilePlace& place, const Profile& profile) {
  Trained trained{.algorithm = place.at("algorithm").word(),
                  .pattern = pattern_of(place),
                  .sync_period = count_or_null(place.at("sync_period")),
                  .bucket_bytes = place.at("bucket_bytes").whole<std::size_t>(1),
                  .steps = place.at("steps").whole<std::uint64_t>(1),
                  .step = place.at("step_seconds").time(),
                  .interval = place.at("interval").time()};
  try {
    topology::find_algorithm(trained.algorithm);
  } catch (const Error& error) {
    place.at("algorithm").refuse("{}", error.what());
  }
  if (phases_of(profile, trained.pattern) == 0) {
    place.at("schedule").refuse("no exchanges {} were measured", name_of(trained.pattern));
  }
  if (trained.step == 0) {
    place.at("step_seconds").refuse("no step takes no time");
  }
  return trained;
}

ExchangePhase exchange_of(const ProfilePlace& place, std::uint32_t workers) {
  ExchangePhase phase;
  phase.pattern = pattern_of(place);
  phase.phase = place.at("phase").whole<std::uint32_t>();
  for (const ProfilePlace& of_size : place.at("samples").list()) {
    ExchangeSample sample;
    sample.bytes = of_size.at("bytes").whole<std::size_t>(1);
    if (!phase.samples.empty() && sample.bytes <= phase.samples.back().bytes) {
      of_size.at("bytes").refuse("{} after {}; samples go from the smallest to the largest",
                                 sample.bytes, phase.samples.back().bytes);
    }
    for (const ProfilePlace& time : of_size.at("seconds").list()) {
      sample.seconds.push_back(time.time());
    }
    if (sample.seconds.size() != workers) {
      of_size.at("seconds").refuse("{} times of {} workers", sample.seconds.size(), workers);
    }
    phase.samples.push_back(std::move(sample));
  }
  if (phase.samples.empty()) {
    place.at("samples").refuse("no measured times");
  }
  return phase;
}

void read_compute(const ProfilePlace& place, Profile& profile) {
  bool any = false;
  for (const ProfilePlace& worker : place.list()) {
    std::vector<ComputeTime>& steps = profile.compute.emplace_back();
    for (const ProfilePlace& step : worker.list()) {
      steps.push_back(step_of(step));
      any = any || steps.back().forward + steps.back().backward > Duration{};
    }
    if (steps.empty()) {
      worker.refuse("no measured steps");
    }
  }
  if (profile.compute.size() != profile.workers) {
    place.refuse("steps of {} workers; there are {}", profile.compute.size(), profile.workers);
  }
  if (!any) {
    place.refuse("no step takes any time: there is nothing to predict");
  }
}

void read_pieces(const ProfilePlace& place, Profile& profile) {
  double shares = 0;
  for (const ProfilePlace& piece : place.list()) {
    profile.ends.push_back(piece.at("end").whole<std::size_t>(1));
    profile.shares.push_back(piece.at("share").number());
    shares += profile.shares.back();
    if (profile.ends.size() > 1 && profile.ends.back() <= profile.ends[profile.ends.size() - 2]) {
      piece.at("end").refuse("pieces end one after the other");
    }
  }
  if (profile.ends.empty() || profile.ends.back() != profile.bytes || !(shares > 0)) {
    place.refuse("they must make up the model's {} bytes", profile.bytes);
  }
}

void read_exchanges(const ProfilePlace& place, Profile& profile) {
  for (const ProfilePlace& phase : place.list()) {
    ExchangePhase next = exchange_of(phase, profile.workers);
    const std::int64_t before = phases_of(profile, next.pattern);
    if (next.phase != before) {
      phase.at("phase").refuse("{}; of this schedule phase {} comes next", next.phase, before);
    }
    profile.exchanges.push_back(std::move(next));
  }
  if (profile.workers < 2) {
    return;  // there is nothing to exchange
  }
  for (const Pattern& pattern : patterns(candidates(profile.workers, profile.per_node))) {
    const std::int64_t found = phases_of(profile, pattern);
    const std::int64_t expected = measured_phases(pattern, profile.workers, profile.per_node);
    if (found == 0) {
      place.refuse("those {} are missing; measure again", name_of(pattern));
    }
    if (found != expected) {
      place.refuse("those {} have {} phases, not {}; measure again", name_of(pattern), found,
                   expected);
    }
  }
}

Profile profile_of(const ProfilePlace& root) {
  if (const int format = static_cast<int>(root.at("format").whole<unsigned>());
      format != kProfileFormat) {
    root.at("format").refuse("this is a profile of form {}, and {} is understood; measure again",
                             format, kProfileFormat);
  }
  Profile profile;
  profile.workers = root.at("workers").whole<std::uint32_t>(1);
  profile.per_node = root.at("per_node").whole<std::uint32_t>(1);
  if (profile.per_node > profile.workers) {
    root.at("per_node").refuse("more on a node than the {} workers", profile.workers);
  }
  profile.launcher = root.at("launcher").word();
  profile.transport = root.at("transport").word();
  profile.model = root.at("model").word();
  profile.parameters = root.at("parameters").whole<std::uint64_t>(1);
  profile.bytes = root.at("bytes").whole<std::size_t>(1);
  read_compute(root.at("compute"), profile);
  read_pieces(root.at("pieces"), profile);
  const ProfilePlace updates = root.at("updates");
  profile.updates = {.gradients = updates.at("gradients").time(),
                     .parameters = updates.at("parameters").time(),
                     .behind = updates.at("behind").time(),
                     .held = updates.at("held").time()};
  profile.network = link_of(root.at("network"));
  profile.local = link_of(root.at("local"));
  read_exchanges(root.at("exchanges"), profile);
  for (const ProfilePlace& run : root.at("trained").list()) {
    profile.trained.push_back(trained_of(run, profile));
  }
  return profile;
}

}  // namespace

Profile read_profile(const std::filesystem::path& file) {
  std::ifstream stream(file);
  require(stream.is_open(), "{} cannot be read", file.string());
  std::stringstream all;
  all << stream.rdbuf();
  const std::string text = all.str();
  const std::string name = file.string();
  ordered_json json;
  try {
    json = ordered_json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    throw Error(ErrorCode::Input,
                fmt::format("{}:{}: this is not JSON", name, line_at(text, e.byte)));
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorCode::Input,
                fmt::format("{}:{}: a number is too large", name, line_of_quoted(text, e.what())));
  }
  return profile_of({name, text, json, ""});
}

}  // namespace starling::model
