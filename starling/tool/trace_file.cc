#include "starling/tool/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string_view>
#include <vector>

namespace starling::tool {
namespace {

using nlohmann::ordered_json;
using sim::Slice;

std::string_view name_of(Slice::What what) {
  constexpr std::array<std::string_view, 7> kNames = {"delay",   "F",       "B", "U",
                                                      "waiting", "waiting", "C"};
  return kNames[static_cast<std::size_t>(what)];
}

std::uint64_t track_of(const Slice& slice) {
  return std::uint64_t{2} * slice.worker.value + (slice.what == Slice::What::Exchange ? 1 : 0);
}

double microseconds(Duration time) { return static_cast<double>(time.count()) / 1e3; }

ordered_json event_of(const Slice& slice) {
  ordered_json event = {{"name", name_of(slice.what)},
                        {"ph", "X"},
                        {"pid", 0},
                        {"tid", track_of(slice)},
                        {"ts", microseconds(slice.begin.time_since_epoch())},
                        {"dur", microseconds(slice.end - slice.begin)}};
  ordered_json& about = event["args"] = {};
  about[slice.what == Slice::What::Exchange ? "version" : "step"] = slice.number;
  if (slice.part) {
    about["part"] = *slice.part;
  }
  if (slice.what == Slice::What::Exchange) {
    about["members"] = slice.members;
  } else if (slice.what == Slice::What::WaitForStraggler) {
    about["for"] = "straggler";
  } else if (slice.what == Slice::What::WaitForExchange) {
    about["for"] = "exchange";
  }
  return event;
}

ordered_json name_track(std::uint64_t track) {
  return {{"name", "thread_name"},
          {"ph", "M"},
          {"pid", 0},
          {"tid", track},
          {"args", {{"name", fmt::format("worker {}{}", track / 2, track % 2 == 1 ? " C" : "")}}}};
}

}  // namespace

void write_trace(std::ostream& file, std::span<const Slice> slices) {
  std::set<std::uint64_t> tracks;
  for (const Slice& slice : slices) {
    tracks.insert(track_of(slice));
  }
  std::vector<Slice> sorted(slices.begin(), slices.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const Slice& a, const Slice& b) {
    return std::pair(track_of(a), a.begin) < std::pair(track_of(b), b.begin);
  });
  file << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  const char* between = "\n";
  for (const std::uint64_t track : tracks) {
    file << std::exchange(between, ",\n") << name_track(track).dump();
  }
  for (const Slice& slice : sorted) {
    file << std::exchange(between, ",\n") << event_of(slice).dump();
  }
  file << "\n]}\n";
}

}  // namespace starling::tool
