// file:PATH, a user's own schedule. The steps are repeated; the format is the one that
// `starling topology … --json` prints, so that any schedule can be saved, edited and read back:
//   {"workers": 4, "steps": [
//      {"groups": [[0, 1], [2, 3]], "self_weight": 0.5},
//      {"edges": [[0, 0, 0.5], [1, 0, 0.5], …]}]}
// groups: every rank in exactly one; self_weight: a number, one per group, or absent for a uniform
// average. edges: [from, to, weight] with a worker's own weight as an edge to itself; the weights
// into every worker sum to 1. Other keys are ignored.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "starling/base/error.h"
#include "starling/topology/makers.h"
#include "starling/topology/table.h"

namespace starling::topology {
namespace {

using Json = nlohmann::json;

constexpr double kTolerance = 1e-9;

// Where in the file something is wrong, for messages.
struct Place {
  const std::string& path;
  std::size_t step;
  std::string text() const { return fmt::format("{}, step {}", path, step); }
};

std::uint32_t rank_of(const Json& value, std::uint32_t workers, const Place& place) {
  require(value.is_number_unsigned() && value.get<std::uint64_t>() < workers,
          "{}: '{}' is not a rank; allowed are 0 to {}", place.text(), value.dump(), workers - 1);
  return value.get<std::uint32_t>();
}

double weight_of(const Json& value, const Place& place) {
  require(value.is_number() && value.get<double>() >= 0 && value.get<double>() <= 1,
          "{}: '{}' is not a weight; allowed are numbers from 0 to 1", place.text(), value.dump());
  return value.get<double>();
}

// The self-weight of group number `index`.
double self_weight(const Json& step, std::size_t index, std::size_t size, const Place& place) {
  const auto found = step.find("self_weight");
  const bool given = found != step.end() && !found->is_null();
  if (given && found->is_array()) {
    require(found->size() == step["groups"].size(), "{}: {} self weights for {} groups",
            place.text(), found->size(), step["groups"].size());
  }
  const double uniform = 1.0 / static_cast<double>(size);
  const double weight =
      given ? weight_of(found->is_array() ? (*found)[index] : *found, place) : uniform;
  // A worker alone keeps everything, and a rounded 1/m means a uniform average.
  return size == 1 || std::abs(weight - uniform) < 1e-12 ? uniform : weight;
}

GroupStep read_groups(const Json& step, std::uint32_t workers, const Place& place) {
  require(step["groups"].is_array(), "{}: 'groups' must be a list of lists of ranks", place.text());
  GroupStep result{{}, std::vector<std::uint32_t>(workers, workers)};
  for (const Json& list : step["groups"]) {
    require(list.is_array() && !list.empty(), "{}: group {} must be a list with a rank or more",
            place.text(), list.dump());
    const auto number = static_cast<std::uint32_t>(result.groups.size());
    std::vector<Rank> members;
    for (const Json& value : list) {
      const std::uint32_t rank = rank_of(value, workers, place);
      require(result.group_of[rank] == workers, "{}: rank {} is in a group twice", place.text(),
              rank);
      result.group_of[rank] = number;
      members.push_back(Rank{rank});
    }
    std::sort(members.begin(), members.end());
    const double weight = self_weight(step, number, members.size(), place);
    result.groups.push_back({std::move(members), weight});
  }
  const auto missing = std::find(result.group_of.begin(), result.group_of.end(), workers);
  require(missing == result.group_of.end(), "{}: rank {} is in no group; every rank must be",
          place.text(), missing - result.group_of.begin());
  return result;
}

void add_edge(EdgeStep& step, const Json& edge, std::uint32_t workers, const Place& place) {
  require(edge.is_array() && edge.size() == 3, "{}: edge {} must be [from, to, weight]",
          place.text(), edge.dump());
  const Rank from{rank_of(edge[0], workers, place)};
  const Rank to{rank_of(edge[1], workers, place)};
  const double weight = weight_of(edge[2], place);
  Neighbours& row = step.rows[to.index()];
  const auto& in = row.in;
  const bool known =
      from == to ? row.self_weight > 0
                 : std::any_of(in.begin(), in.end(), [&](const Edge& e) { return e.peer == from; });
  require(!known, "{}: the edge from {} to {} is there twice", place.text(), from, to);
  if (from == to) {
    row.self_weight = weight;
  } else if (weight > 0) {
    row.in.push_back({from, weight});
    step.rows[from.index()].out.push_back({to, weight});
  }
}

EdgeStep read_edges(const Json& step, std::uint32_t workers, const Place& place) {
  require(step["edges"].is_array(), "{}: 'edges' must be a list of [from, to, weight]",
          place.text());
  EdgeStep result{std::vector<Neighbours>(workers, Neighbours{0, {}, {}})};
  for (const Json& edge : step["edges"]) {
    add_edge(result, edge, workers, place);
  }
  const auto by_peer = [](const Edge& a, const Edge& b) { return a.peer < b.peer; };
  for (std::uint32_t rank = 0; rank < workers; ++rank) {
    Neighbours& row = result.rows[rank];
    double sum = row.self_weight;
    for (const Edge& edge : row.in) {
      sum += edge.weight;
    }
    require(std::abs(sum - 1) <= kTolerance,
            "{}: the weights into rank {} sum to {}; every row must sum to 1", place.text(), rank,
            sum);
    std::sort(row.in.begin(), row.in.end(), by_peer);
    std::sort(row.out.begin(), row.out.end(), by_peer);
  }
  return result;
}

TableStep read_step(const Json& step, std::uint32_t workers, const Place& place) {
  require(step.is_object() && step.contains("groups") != step.contains("edges"),
          "{}: must be an object with either 'groups' or 'edges'", place.text());
  if (step.contains("groups")) {
    return read_groups(step, workers, place);
  }
  return read_edges(step, workers, place);
}

Json read_json(const std::string& path) {
  std::ifstream file(path);
  require(file.good(), "cannot read the schedule file '{}'", path);
  try {
    return Json::parse(file);
  } catch (const Json::parse_error& e) {
    throw Error(ErrorCode::Input, fmt::format("{} is not JSON: {}", path, e.what()));
  }
}

}  // namespace

std::unique_ptr<Schedule> make_from_file(const std::string& path, const ScheduleOptions& options) {
  const Json json = read_json(path);
  require(json.is_object() && json.contains("workers") && json["workers"].is_number_unsigned(),
          "{}: must be an object with the number of 'workers'", path);
  require(json["workers"].get<std::uint64_t>() == options.workers,
          "{} is a schedule for {} workers; asked for {}", path, json["workers"].dump(),
          options.workers);
  require(json.contains("steps") && json["steps"].is_array() && !json["steps"].empty(),
          "{}: 'steps' must be a list with a step or more", path);
  std::vector<TableStep> steps;
  for (const Json& step : json["steps"]) {
    steps.push_back(read_step(step, options.workers, {path, steps.size()}));
  }
  return make_table(options.workers, std::move(steps));
}

}  // namespace starling::topology
