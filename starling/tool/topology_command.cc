#include "starling/tool/topology_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/error.h"
#include "starling/topology/analysis.h"
#include "starling/topology/schedule.h"

namespace starling::tool {
namespace {

using nlohmann::ordered_json;
using topology::Analysis;
using topology::Group;
using topology::Neighbours;
using topology::Row;
using topology::Schedule;
using topology::View;

constexpr std::size_t kWidth = 100;

struct Request {
  std::vector<std::string> names;
  topology::ScheduleOptions options;
  std::uint32_t group_size = 0;
  std::uint32_t sync_period = 0;
  std::int64_t steps = 0;
  std::string bytes = "100M";
  bool json = false;
  bool has_workers = false;
  bool has_steps = false;
};

// One schedule and what is known of it.
struct Subject {
  std::string name;
  std::unique_ptr<Schedule> schedule;
  View view;
  Analysis analysis;
  std::int64_t shown_steps;
};

Subject look_at(const std::string& name, const Request& request) {
  auto schedule = topology::make_schedule(name, request.options);
  View view = View::full(request.options.workers);
  topology::AnalysisOptions wanted{.per_node = request.options.per_node,
                                   .model = parse_bytes(request.bytes),
                                   .long_run = !request.json};
  if (request.has_steps) {
    wanted.steps = request.steps;
  }
  Analysis analysis = topology::analyse(*schedule, view, wanted);
  const std::int64_t shown = request.has_steps ? request.steps : analysis.period.value_or(8);
  return {name, std::move(schedule), std::move(view), std::move(analysis), shown};
}

// A step as all workers see it: groups if everybody is in one, else edges.
struct WholeStep {
  std::vector<Group> groups;
  struct Link {
    Rank from;
    Rank to;
    double weight;
  };
  std::vector<Link> edges;
  bool is_grouped = true;
};

void add_edges(WholeStep& step, Rank rank, const Row& row) {
  if (const auto* group = std::get_if<Group>(&row)) {
    for (const Rank member : group->members) {
      step.edges.push_back(
          {member, rank, member == rank ? group->self_weight : group->other_weight()});
    }
    return;
  }
  const auto& neighbours = std::get<Neighbours>(row);
  step.edges.push_back({rank, rank, neighbours.self_weight});
  for (const auto& edge : neighbours.in) {
    step.edges.push_back({edge.peer, rank, edge.weight});
  }
}

WholeStep whole_step(const Subject& subject, std::int64_t t) {
  WholeStep step;
  for (const Rank rank : subject.view.live()) {
    const Row row = subject.schedule->row(Step{t}, rank, subject.view);
    const auto* group = std::get_if<Group>(&row);
    step.is_grouped = step.is_grouped && group != nullptr;
    if (group != nullptr && group->members.front() == rank) {
      step.groups.push_back(*group);
    }
  }
  if (!step.is_grouped) {
    step.groups.clear();
    for (const Rank rank : subject.view.live()) {
      add_edges(step, rank, subject.schedule->row(Step{t}, rank, subject.view));
    }
    std::sort(step.edges.begin(), step.edges.end(), [](const auto& a, const auto& b) {
      return std::pair(a.to, a.from) < std::pair(b.to, b.from);
    });
  }
  return step;
}

ordered_json json_of(const WholeStep& step) {
  ordered_json json;
  if (!step.is_grouped) {
    json["edges"] = ordered_json::array();
    for (const auto& [from, to, weight] : step.edges) {
      json["edges"].push_back({from.value, to.value, weight});
    }
    return json;
  }
  std::vector<double> weights;
  json["groups"] = ordered_json::array();
  for (const Group& group : step.groups) {
    ordered_json members = ordered_json::array();
    for (const Rank member : group.members) {
      members.push_back(member.value);
    }
    json["groups"].push_back(std::move(members));
    weights.push_back(group.self_weight);
  }
  const bool same = std::count(weights.begin(), weights.end(), weights.front()) ==
                    static_cast<std::ptrdiff_t>(weights.size());
  json["self_weight"] = same ? ordered_json(weights.front()) : ordered_json(weights);
  return json;
}

ordered_json json_of(const Subject& subject) {
  const Analysis& a = subject.analysis;
  const auto or_null = [](const auto& value) {
    return value ? ordered_json(*value) : ordered_json(nullptr);
  };
  ordered_json json;
  json["schedule"] = subject.name;
  json["workers"] = subject.view.workers();
  json["period"] = or_null(a.period);
  json["exact_after"] = or_null(a.exact_after);
  json["steps"] = ordered_json::array();
  for (std::int64_t t = 0; t < subject.shown_steps; ++t) {
    json["steps"].push_back(json_of(whole_step(subject, t)));
  }
  json["deviation"] = a.deviation;
  json["network_bytes_per_node"] = a.traffic.node_mean;
  return json;
}

// "0-3,8": runs of consecutive ranks shortened.
std::string short_list(const Group& group) {
  std::string text;
  const auto& m = group.members;
  for (std::size_t i = 0; i < m.size();) {
    std::size_t end = i + 1;
    while (end < m.size() && m[end].value == m[end - 1].value + 1) {
      ++end;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ",", m[i]);
    if (end > i + 1) {
      text += fmt::format("{}{}", end > i + 2 ? "-" : ",", m[end - 1]);
    }
    i = end;
  }
  return text;
}

// Items side by side as far as they fit, then how many more there are.
std::string as_fits(const std::vector<std::string>& items) {
  std::string line;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (line.size() + items[i].size() > kWidth - 24) {
      return fmt::format("{} … and {} more", line, items.size() - i);
    }
    line += (line.empty() ? "" : "  ") + items[i];
  }
  return line;
}

// One letter per worker, the same for a whole group, a dot for who is alone, and a bar between
// nodes.
std::string letters(const WholeStep& step, std::uint32_t workers, std::uint32_t per_node) {
  std::string line(workers, '.');
  std::size_t number = 0;
  for (const Group& group : step.groups) {
    if (group.members.size() > 1) {
      const std::size_t letter = number++ % 52;
      for (const Rank member : group.members) {
        line[member.index()] = static_cast<char>((letter < 26 ? 'A' : 'a' - 26) + letter);
      }
    }
  }
  if (per_node > 1) {
    for (std::size_t node = (workers - 1) / per_node; node > 0; --node) {
      line.insert(node * per_node, "|");
    }
  }
  return line;
}

void draw(const Subject& subject, std::uint32_t per_node) {
  const std::int64_t steps =
      std::min({subject.shown_steps, subject.analysis.period.value_or(8), std::int64_t{32}});
  for (std::int64_t t = 0; t < steps; ++t) {
    const WholeStep step = whole_step(subject, t);
    std::vector<std::string> items;
    items.reserve(step.groups.size() + step.edges.size());
    for (const Group& group : step.groups) {
      items.push_back(fmt::format("{{{}}}", short_list(group)));
    }
    for (const auto& [from, to, weight] : step.edges) {
      if (from != to) {
        items.push_back(fmt::format("{}→{}:{:.3g}", from, to, weight));
      }
    }
    const std::uint32_t n = subject.view.workers();
    if (step.is_grouped && n + n / per_node <= kWidth - 12) {
      fmt::print("  step {:<3} {}\n", t, letters(step, n, per_node));
      fmt::print("           {}\n", as_fits(items));
    } else {
      fmt::print("  step {:<3} {}\n", t, as_fits(items));
    }
  }
  if (subject.shown_steps > steps) {
    fmt::print("  … and so on\n");
  }
}

std::string number(double value) { return value == 0 ? "0" : fmt::format("{:.6g}", value); }

template <typename T>
std::string or_dash(const std::optional<T>& value) {
  return value ? fmt::format("{:.6g}", static_cast<double>(*value)) : "-";
}

// Label and value of everything that the analysis says.
struct Line {
  std::string label;
  std::function<std::string(const Analysis&)> value;
};

std::vector<Line> lines(std::size_t rounds) {
  std::vector<Line> all = {
      {"period, steps", [](const Analysis& a) { return or_dash(a.period); }},
      {"keeps the mean (rows and columns sum to 1)",
       [](const Analysis& a) {
         return a.is_doubly_stochastic() ? "yes" : a.is_column_stochastic() ? "columns" : "no";
       }},
      {"connects everybody", [](const Analysis& a) { return a.connected ? "yes" : "no"; }},
      {"exact after, rounds from step 0", [](const Analysis& a) { return or_dash(a.exact_after); }},
  };
  for (std::size_t r = 0; r <= rounds; ++r) {
    all.push_back({fmt::format("squared deviation left after round {}", r), [r](const Analysis& a) {
                     return r < a.deviation.size() ? number(a.deviation[r]) : std::string("-");
                   }});
  }
  const auto add = [&](const char* label, std::function<std::string(const Analysis&)> value) {
    all.push_back({label, std::move(value)});
  };
  add("factor per period in the long run", [](const Analysis& a) { return or_dash(a.factor); });
  add("norm of a period", [](const Analysis& a) { return or_dash(a.norm); });
  add("deviation under unit noise, after mixing",
      [](const Analysis& a) { return or_dash(a.stationary); });
  add("  … and after the noise", [](const Analysis& a) {
    return a.stationary ? number(*a.stationary + 1 - 1.0 / a.workers) : std::string("-");
  });
  const auto bytes = [](double value) {
    return to_string(Bytes{static_cast<std::uint64_t>(std::llround(value))});
  };
  add("busiest link in a step", [=](const Analysis& a) { return bytes(a.traffic.link_peak); });
  add("a node's card per step, mean",
      [=](const Analysis& a) { return bytes(a.traffic.node_mean); });
  add("a node's card per step, most",
      [=](const Analysis& a) { return bytes(a.traffic.node_peak); });
  return all;
}

void print_table(const std::vector<Subject>& subjects, const Request& request) {
  std::size_t rounds = 0;
  std::size_t width = 12;
  for (const Subject& subject : subjects) {
    rounds = std::max(rounds, subject.analysis.deviation.size() - 1);
    width = std::max(width, subject.name.size() + 2);
  }
  fmt::print("\n{:<44}",
             fmt::format("{} workers, {} per node, a model of {}", request.options.workers,
                         request.options.per_node, to_string(parse_bytes(request.bytes))));
  for (const Subject& subject : subjects) {
    fmt::print("{:>{}}", subject.name, width);
  }
  for (const Line& line : lines(rounds)) {
    fmt::print("\n{:<44}", line.label);
    for (const Subject& subject : subjects) {
      fmt::print("{:>{}}", line.value(subject.analysis), width);
    }
  }
  fmt::print("\n");
}

void print_list() {
  for (const auto& entry : topology::schedule_entries()) {
    fmt::print("{:<16} {}\n", entry.name, entry.summary);
  }
}

void run(const Request& request) {
  if (request.names == std::vector<std::string>{"list"}) {
    print_list();
    return;
  }
  require(request.has_workers, "how many workers? Say --workers N");
  require(request.options.per_node <= request.options.workers,
          "--per-node {} is more than the {} workers", request.options.per_node,
          request.options.workers);
  require(!request.has_steps || (request.steps >= 1 && request.steps <= 100000),
          "--steps {}: allowed are 1 to 100000", request.steps);
  std::vector<Subject> subjects;
  subjects.reserve(request.names.size());
  for (const std::string& name : request.names) {
    subjects.push_back(look_at(name, request));
  }
  if (request.json) {
    ordered_json json = ordered_json::array();
    for (const Subject& subject : subjects) {
      json.push_back(json_of(subject));
    }
    fmt::print("{}\n", (subjects.size() == 1 ? json.front() : json).dump());
    return;
  }
  if (subjects.size() == 1) {
    draw(subjects.front(), request.options.per_node);
  }
  print_table(subjects, request);
}

}  // namespace

void add_topology_command(CLI::App& app) {
  // Lives as long as the callback that reads it.
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("topology", "Show, check and compare schedules");
  command
      ->add_option("names", request->names,
                   "Schedules, several to compare; 'list' names them all; file:PATH is your own")
      ->required();
  auto& options = request->options;
  auto* workers = command->add_option("-n,--workers", options.workers, "Number of workers");
  command->add_option("-l,--per-node", options.per_node, "Workers on one node")
      ->capture_default_str();
  auto* size = command->add_option("-s,--group-size", request->group_size,
                                   "Most members of a group (about the square root)");
  command->add_option("-k,--peers", options.peers, "Neighbours per step of push and base-k")
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Seed of pairs")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  auto* sync = command->add_option("--sync-period", request->sync_period,
                                   "Everybody averages at every so manyth step");
  auto* steps = command->add_option("--steps", request->steps, "Steps to show and analyse");
  command->add_option("--bytes", request->bytes, "Size of the model")->capture_default_str();
  command->add_flag("--json", request->json, "Print JSON");
  command->callback([=] {
    Request now = *request;
    now.has_workers = workers->count() > 0;
    now.has_steps = steps->count() > 0;
    if (size->count() > 0) {
      now.options.group_size = now.group_size;
    }
    if (sync->count() > 0) {
      now.options.sync_period = now.sync_period;
    }
    run(now);
  });
}

}  // namespace starling::tool
