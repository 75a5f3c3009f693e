#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <type_traits>

#include "starling/base/error.h"
#include "starling/base/json_line.h"
#include "starling/base/time_words.h"
#include "starling/model/profile.h"

namespace starling::model {
namespace {

using nlohmann::ordered_json;

// Of the form below. Another one means other things by its numbers.
constexpr int kFormat = 1;

// A value in the file, and where it is.
class Place {
 public:
  Place(const std::string& file, const std::string& text, const ordered_json& value,
        std::string pointer)
      : file_(file), text_(text), value_(value), pointer_(std::move(pointer)) {}

  template <typename... Arguments>
  [[noreturn]] void refuse(fmt::format_string<Arguments...> format,
                           Arguments&&... arguments) const {
    throw Error(ErrorCode::Input,
                fmt::format("{}:{}: {}: {}", file_, json_line(text_, pointer_),
                            pointer_.empty() ? "the profile" : pointer_.substr(1),
                            fmt::format(format, std::forward<Arguments>(arguments)...)));
  }

  Place at(const std::string& key) const {
    if (!value_.is_object() || !value_.contains(key)) {
      refuse("'{}' is missing", key);
    }
    return {file_, text_, value_.at(key), pointer_ + "/" + key};
  }
  std::vector<Place> list() const {
    if (!value_.is_array()) {
      refuse("a list is expected here");
    }
    std::vector<Place> places;
    for (std::size_t i = 0; i < value_.size(); ++i) {
      places.push_back({file_, text_, value_.at(i), fmt::format("{}/{}", pointer_, i)});
    }
    return places;
  }
  bool is_null() const { return value_.is_null(); }

  std::string word() const {
    if (!value_.is_string()) {
      refuse("a text is expected here");
    }
    return value_.get<std::string>();
  }
  bool flag() const {
    if (!value_.is_boolean()) {
      refuse("true or false is expected here");
    }
    return value_.get<bool>();
  }
  // Not negative.
  double number() const {
    if (!value_.is_number() || !(value_.get<double>() >= 0)) {
      refuse("{} is not a number of 0 or more", value_.dump());
    }
    return value_.get<double>();
  }
  // Seconds: a clock can count them.
  double time() const {
    constexpr double kMost = 1e6;
    if (number() > kMost) {
      refuse("{} s are more than a measured time can be", value_.dump());
    }
    return number();
  }
  template <typename Whole>
  Whole whole(Whole least = 0) const {
    if (!value_.is_number_unsigned() || value_.get<std::uint64_t>() < least) {
      refuse("{} is not a whole number of {} or more", value_.dump(), least);
    }
    if (value_.get<std::uint64_t>() > std::numeric_limits<Whole>::max()) {
      refuse("{} is too large", value_.dump());
    }
    return value_.get<Whole>();
  }

 private:
  const std::string& file_;
  const std::string& text_;
  const ordered_json& value_;
  std::string pointer_;
};

Link link_of(const Place& place) {
  Link link{.latency = place.at("latency").time(), .bandwidth = place.at("bandwidth").number()};
  if (link.bandwidth == 0) {
    place.at("bandwidth").refuse("must be more than 0 bytes per second");
  }
  return link;
}

ordered_json json_of(const Link& link) {
  return {{"latency", link.latency}, {"bandwidth", link.bandwidth}};
}

ComputeTime step_of(const Place& place) {
  const auto times = place.list();
  if (times.size() != 2) {
    place.refuse("[forward, backward] in seconds is expected here");
  }
  return {duration(times[0].time()), duration(times[1].time())};
}

std::optional<std::uint32_t> count_or_null(const Place& place) {
  return place.is_null() ? std::nullopt : std::optional(place.whole<std::uint32_t>(1));
}

ordered_json json_or_null(const std::optional<std::uint32_t>& count) {
  return count ? ordered_json(*count) : ordered_json();
}

Pattern pattern_of(const Place& place) {
  return {.schedule = place.at("schedule").word(),
          .group_size = count_or_null(place.at("group_size")),
          .peers = place.at("peers").whole<std::uint32_t>(1),
          .push = place.at("push").flag()};
}

ordered_json json_of(const Pattern& pattern) {
  return {{"schedule", pattern.schedule},
          {"group_size", json_or_null(pattern.group_size)},
          {"peers", pattern.peers},
          {"push", pattern.push}};
}

Trained trained_of(const Place& place) {
  return {.algorithm = place.at("algorithm").word(),
          .pattern = pattern_of(place),
          .sync_period = count_or_null(place.at("sync_period")),
          .bucket_bytes = place.at("bucket_bytes").whole<std::size_t>(1),
          .steps = place.at("steps").whole<std::uint64_t>(1),
          .step = place.at("step_seconds").number(),
          .interval = place.at("interval").number()};
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

ExchangePhase exchange_of(const Place& place, std::uint32_t workers) {
  ExchangePhase phase;
  phase.pattern = pattern_of(place);
  phase.phase = place.at("phase").whole<std::uint32_t>();
  for (const Place& of_size : place.at("samples").list()) {
    ExchangeSample sample;
    sample.bytes = of_size.at("bytes").whole<std::size_t>(1);
    for (const Place& time : of_size.at("seconds").list()) {
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

Profile profile_of(const Place& root) {
  if (const int format = static_cast<int>(root.at("format").whole<unsigned>()); format != kFormat) {
    root.at("format").refuse("this is a profile of form {}, and {} is understood; measure again",
                             format, kFormat);
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
  for (const Place& worker : root.at("compute").list()) {
    std::vector<ComputeTime>& steps = profile.compute.emplace_back();
    for (const Place& step : worker.list()) {
      steps.push_back(step_of(step));
    }
    if (steps.empty()) {
      worker.refuse("no measured steps");
    }
  }
  if (profile.compute.size() != profile.workers) {
    root.at("compute").refuse("steps of {} workers; there are {}", profile.compute.size(),
                              profile.workers);
  }
  double shares = 0;
  for (const Place& piece : root.at("pieces").list()) {
    profile.ends.push_back(piece.at("end").whole<std::size_t>(1));
    profile.shares.push_back(piece.at("share").number());
    shares += profile.shares.back();
    if (profile.ends.size() > 1 && profile.ends.back() <= profile.ends[profile.ends.size() - 2]) {
      piece.at("end").refuse("pieces end one after the other");
    }
  }
  if (profile.ends.empty() || profile.ends.back() != profile.bytes || !(shares > 0)) {
    root.at("pieces").refuse("they must make up the model's {} bytes", profile.bytes);
  }
  const Place updates = root.at("updates");
  profile.updates = {.gradients = updates.at("gradients").time(),
                     .parameters = updates.at("parameters").time(),
                     .behind = updates.at("behind").time(),
                     .held = updates.at("held").time()};
  profile.network = link_of(root.at("network"));
  profile.local = link_of(root.at("local"));
  for (const Place& phase : root.at("exchanges").list()) {
    ExchangePhase next = exchange_of(phase, profile.workers);
    const std::int64_t before =
        std::count_if(profile.exchanges.begin(), profile.exchanges.end(),
                      [&](const ExchangePhase& other) { return other.pattern == next.pattern; });
    if (next.phase != before) {
      phase.at("phase").refuse("{}; of this schedule phase {} comes next", next.phase, before);
    }
    profile.exchanges.push_back(std::move(next));
  }
  if (std::none_of(profile.exchanges.begin(), profile.exchanges.end(), [](const ExchangePhase& of) {
        return of.pattern == Pattern{.schedule = "complete"};
      })) {
    root.at("exchanges").refuse("those of everybody (complete) are missing; measure again");
  }
  for (const Place& run : root.at("trained").list()) {
    profile.trained.push_back(trained_of(run));
  }
  return profile;
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

void write_profile(const Profile& profile, const std::filesystem::path& file) {
  ordered_json json = {{"format", kFormat},
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
    ordered_json entry = json_of(phase.pattern);
    entry["phase"] = phase.phase;
    entry["samples"] = ordered_json::array();
    for (const ExchangeSample& sample : phase.samples) {
      entry["samples"].push_back({{"bytes", sample.bytes}, {"seconds", sample.seconds}});
    }
    json["exchanges"].push_back(std::move(entry));
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
