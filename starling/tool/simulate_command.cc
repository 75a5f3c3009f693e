#include "starling/tool/simulate_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/sim/collective.h"
#include "starling/tool/simulate_training_command.h"
#include "starling/tool/suggest.h"

namespace starling::tool {
namespace {

using sim::CollectiveKind;
using sim::CollectiveOptions;
using sim::CollectiveResult;

// What the command line says, before it makes sense.
struct Arguments {
  std::string kind = "allreduce";
  std::string algorithm = "auto";
  std::string bytes = "1M";
  std::string bandwidth = "10G";
  std::string local_bandwidth = "40G";
  std::vector<std::string> late;
  bool json = false;
  bool timing = false;
  CollectiveOptions options;
};

constexpr CollectiveKind kKinds[] = {CollectiveKind::AllReduce, CollectiveKind::Ring,
                                     CollectiveKind::Group,     CollectiveKind::Neighbour,
                                     CollectiveKind::Push,      CollectiveKind::Broadcast,
                                     CollectiveKind::Barrier};
constexpr comm::AllReduce kAlgorithms[] = {comm::AllReduce::Auto, comm::AllReduce::Doubling,
                                           comm::AllReduce::Direct, comm::AllReduce::Halving,
                                           comm::AllReduce::Ring};

template <typename Value, std::size_t kCount>
Value pick(std::string_view what, const std::string& word, const Value (&values)[kCount]) {
  std::vector<std::string> names;
  for (const Value& value : values) {
    if (word == name_of(value)) {
      return value;
    }
    names.emplace_back(name_of(value));
  }
  require(false, "{}", unknown(what, word, names));
  return values[0];
}

constexpr double kMostSeconds = 3600;

// RANK:SECONDS
sim::Late parse_late(const std::string& text) {
  sim::Late late;
  const char* end = text.data() + text.size();
  const auto [colon, error] = std::from_chars(text.data(), end, late.worker.value);
  bool right = error == std::errc() && colon != end && *colon == ':';
  if (right) {
    const auto [rest, wrong] = std::from_chars(colon + 1, end, late.seconds);
    right = wrong == std::errc() && rest == end && !(std::abs(late.seconds) > kMostSeconds) &&
            !std::isnan(late.seconds);
  }
  require(right, "--late '{}': write RANK:SECONDS, such as 17:0.05", text);
  return late;
}

void interpret(Arguments& a) {
  a.options.kind = pick("--kind", a.kind, kKinds);
  a.options.algorithm = pick("--algorithm", a.algorithm, kAlgorithms);
  a.options.bytes = parse_bytes(a.bytes);
  a.options.network.ports.bandwidth = static_cast<double>(parse_bytes(a.bandwidth).value);
  a.options.network.ports.local_bandwidth =
      static_cast<double>(parse_bytes(a.local_bandwidth).value);
  const sim::PortOptions& ports = a.options.network.ports;
  require(ports.per_node <= ports.workers, "--per-node {} is more than the {} worker{} of the job",
          ports.per_node, ports.workers, ports.workers == 1 ? "" : "s");
  a.options.group_size = std::min(a.options.group_size, a.options.network.ports.workers);
  for (const std::string& text : a.late) {
    a.options.late.push_back(parse_late(text));
  }
}

std::string time_text(double s) {
  return s >= 1      ? fmt::format("{:.3f} s", s)
         : s >= 1e-3 ? fmt::format("{:.3f} ms", s * 1e3)
                     : fmt::format("{:.2f} us", s * 1e6);
}

// Summed over all workers: how many waited for this one, and how long.
struct WaitedFor {
  std::size_t workers = 0;
  double total = 0;
  double longest = 0;
};

std::vector<std::pair<Rank, WaitedFor>> waited_for(const CollectiveResult& result) {
  std::map<Rank, WaitedFor> table;
  for (const sim::WorkerResult& worker : result.workers) {
    for (const comm::Wait& wait : worker.waits) {
      WaitedFor& entry = table[wait.peer];
      ++entry.workers;
      entry.total += seconds(wait.time);
      entry.longest = std::max(entry.longest, seconds(wait.time));
    }
  }
  std::vector<std::pair<Rank, WaitedFor>> sorted(table.begin(), table.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.total > b.second.total; });
  return sorted;
}

double total_wait(const sim::WorkerResult& worker) {
  double sum = 0;
  for (const comm::Wait& wait : worker.waits) {
    sum += seconds(wait.time);
  }
  return sum;
}

double mean_bytes(const CollectiveResult& result) {
  double sum = 0;
  for (const sim::WorkerResult& worker : result.workers) {
    sum += static_cast<double>(worker.bytes_sent);
  }
  return sum / static_cast<double>(result.workers.size());
}

std::uint64_t most_bytes(const CollectiveResult& result) {
  std::uint64_t most = 0;
  for (const sim::WorkerResult& worker : result.workers) {
    most = std::max(most, worker.bytes_sent);
  }
  return most;
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::Ring ||
         kind == CollectiveKind::Group;
}

void print_waits(const Arguments& a, const CollectiveResult& result) {
  constexpr std::size_t kRows = 6;
  for (const sim::Late& late : a.options.late) {
    fmt::print("worker {} arrived {} late\n", late.worker, time_text(late.seconds));
  }
  const auto table = waited_for(result);
  fmt::print("\n{:<12} {:>9} {:>14} {:>14}\n", "waited for", "by", "each (mean)", "longest");
  for (std::size_t i = 0; i < std::min(kRows, table.size()); ++i) {
    const auto& [rank, entry] = table[i];
    fmt::print("{:<12} {:>9} {:>14} {:>14}\n", fmt::format("worker {}", rank),
               fmt::format("{} of {}", entry.workers, result.workers.size() - 1),
               time_text(entry.total / static_cast<double>(entry.workers)),
               time_text(entry.longest));
  }
  if (table.size() > kRows) {
    double rest = 0;
    for (std::size_t i = kRows; i < table.size(); ++i) {
      rest += table[i].second.total;
    }
    fmt::print("{} others together cost {} of waiting\n", table.size() - kRows, time_text(rest));
  }

  std::vector<std::size_t> order(result.workers.size());
  for (std::size_t r = 0; r < order.size(); ++r) {
    order[r] = r;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
    return total_wait(result.workers[x]) > total_wait(result.workers[y]);
  });
  fmt::print("\n{:<12} {:>14} {:>14} {:>14}   {}\n", "worker", "arrived", "finished", "waited",
             "mostly for");
  const auto row = [&](std::size_t r) {
    const sim::WorkerResult& w = result.workers[r];
    std::vector<comm::Wait> waits = w.waits;
    std::stable_sort(waits.begin(), waits.end(),
                     [](const comm::Wait& x, const comm::Wait& y) { return x.time > y.time; });
    std::string names;
    for (std::size_t i = 0; i < std::min<std::size_t>(2, waits.size()); ++i) {
      names += fmt::format("{}worker {} ({})", i == 0 ? "" : ", ", waits[i].peer,
                           time_text(seconds(waits[i].time)));
    }
    fmt::print("{:<12} {:>14} {:>14} {:>14}   {}\n", r, time_text(w.arrived), time_text(w.finished),
               time_text(total_wait(w)), names);
  };
  const std::size_t shown = std::min<std::size_t>(order.size(), 4);
  for (std::size_t i = 0; i < shown; ++i) {
    row(order[i]);
  }
  if (order.size() > 2 * shown) {
    fmt::print("… {} more\n", order.size() - 2 * shown);
  }
  for (std::size_t i = std::max(shown, order.size() - std::min(shown, order.size()));
       i < order.size(); ++i) {
    row(order[i]);
  }
}

void print_text(const Arguments& a, const CollectiveResult& result, double wall) {
  const sim::PortOptions& ports = a.options.network.ports;
  fmt::print(
      "{}{}{} among {} workers, {} per node; {}/s and {} between nodes\n", name_of(a.options.kind),
      reduces(a.options.kind) ? fmt::format(" ({})", name_of(result.algorithm)) : "",
      a.options.kind == CollectiveKind::Barrier ? ""
                                                : fmt::format(" of {}", to_string(a.options.bytes)),
      ports.workers, ports.per_node, bytes_text(ports.bandwidth), time_text(ports.latency));
  fmt::print("virtual time     {:>12}   closed form {:>12}{}\n", time_text(result.seconds),
             time_text(result.closed_form.seconds),
             result.closed_form_applies
                 ? ""
                 : " if nobody were late, cards were not shared and there were no jitter");
  fmt::print("busiest worker   {:>12}   closed form {:>12} of payload sent\n",
             to_string(Bytes{most_bytes(result)}), bytes_text(result.closed_form.bytes));
  fmt::print("messages         {:>12}   events {}, trace {:016x}\n", result.messages, result.events,
             result.trace);
  if (a.options.verify) {
    fmt::print("verified: every worker holds the right numbers, members the same bits\n");
  }
  if (a.timing) {
    fmt::print("took {:.3f} s, {:.2f} million messages per second\n", wall,
               static_cast<double>(result.messages) / wall / 1e6);
  }
  if (result.workers.size() > 1) {
    print_waits(a, result);
  }
}

void print_json(const Arguments& a, const CollectiveResult& result, double wall) {
  const sim::PortOptions& ports = a.options.network.ports;
  nlohmann::json j = {
      {"kind", name_of(a.options.kind)},
      {"workers", ports.workers},
      {"per_node", ports.per_node},
      {"bytes", a.options.kind == CollectiveKind::Barrier ? 0 : a.options.bytes.value},
      {"latency", ports.latency},
      {"bandwidth", ports.bandwidth},
      {"seed", a.options.network.seed},
      {"virtual_seconds", result.seconds},
      {"closed_form_seconds", result.closed_form.seconds},
      {"closed_form_applies", result.closed_form_applies},
      {"bytes_per_worker", mean_bytes(result)},
      {"bytes_per_worker_most", most_bytes(result)},
      {"closed_form_bytes", result.closed_form.bytes},
      {"messages", result.messages},
      {"events", result.events},
      {"trace", fmt::format("{:016x}", result.trace)},
      {"verified", a.options.verify}};
  if (reduces(a.options.kind)) {
    j["algorithm"] = name_of(result.algorithm);
  }
  if (a.timing) {
    j["wall_seconds"] = wall;
    j["messages_per_second"] = static_cast<double>(result.messages) / wall;
  }
  auto& waited = j["waited_for"] = nlohmann::json::array();
  for (const auto& [rank, entry] : waited_for(result)) {
    waited.push_back({{"worker", rank.value},
                      {"by", entry.workers},
                      {"mean_seconds", entry.total / static_cast<double>(entry.workers)},
                      {"longest_seconds", entry.longest}});
  }
  auto& rows = j["per_worker"] = nlohmann::json::array();
  for (std::size_t r = 0; r < result.workers.size(); ++r) {
    const sim::WorkerResult& w = result.workers[r];
    rows.push_back({{"worker", r},
                    {"arrived", w.arrived},
                    {"finished", w.finished},
                    {"waited", total_wait(w)},
                    {"bytes_sent", w.bytes_sent}});
  }
  fmt::print("{}\n", j.dump(2));
}

void show_progress(const sim::Network& network) {
  fmt::print(stderr, "\r{:.1f} million events, {:.6f} s of virtual time ",
             static_cast<double>(network.events()) / 1e6,
             seconds(network.now().time_since_epoch()));
}

void run(Arguments& a) {
  interpret(a);
  const WallTime begin = std::chrono::steady_clock::now();
  WallTime shown = begin;
  if (isatty(STDERR_FILENO) != 0) {
    a.options.progress = [&shown](const sim::Network& network) {
      if (const WallTime now = std::chrono::steady_clock::now();
          now - shown > std::chrono::milliseconds(500)) {
        shown = now;
        show_progress(network);
      }
    };
  }
  const CollectiveResult result = simulate(a.options);
  const double wall = seconds(std::chrono::steady_clock::now() - begin);
  if (shown != begin) {
    fmt::print(stderr, "\r{:60}\r", "");
  }
  a.json ? print_json(a, result, wall) : print_text(a, result, wall);
}

}  // namespace

void add_simulate_command(CLI::App& app) {
  CLI::App* simulate = app.add_subcommand(
      "simulate", "Training on a network in virtual time, with the real protocols");
  simulate->require_subcommand(0, 1);
  add_training_simulation(*simulate);
  CLI::App* c = simulate->add_subcommand(
      "collective", "One collective: virtual time and bytes against the closed form, who waits");
  auto a = std::make_shared<Arguments>();  // lives as long as the options that write to it
  sim::PortOptions& ports = a->options.network.ports;
  ports.workers = 16;
  const CLI::Range count(std::size_t{1}, std::size_t{1'000'000}, "1 … 1000000");
  c->add_option("--workers", ports.workers, "Number of workers")
      ->capture_default_str()
      ->check(count);
  c->add_option("--bytes", a->bytes, "Buffer of each worker, such as 4096, 100M or 64Ki")
      ->capture_default_str();
  c->add_option(
       "--kind", a->kind,
       "allreduce, ring (the rival), group, neighbour (both on a ring), push (to 1, 2, 4 … "
       "ahead), broadcast, barrier")
      ->capture_default_str();
  c->add_option("--algorithm", a->algorithm,
                "Of allreduce and group: auto, doubling, direct, halving, ring")
      ->capture_default_str();
  c->add_option("--group-size", a->options.group_size, "Of group: workers per group")
      ->capture_default_str()
      ->check(count);
  c->add_option("--peers", a->options.peers, "Of push: how many workers each sends to")
      ->capture_default_str()
      ->check(count);
  c->add_option("--per-node", ports.per_node, "Workers that share a network card")
      ->capture_default_str()
      ->check(count);
  const CLI::Range time(0.0, kMostSeconds);
  c->add_option("--latency", ports.latency, "Between nodes, seconds")
      ->capture_default_str()
      ->check(time);
  c->add_option("--bandwidth", a->bandwidth, "Of a card, each way, bytes per second")
      ->capture_default_str();
  c->add_option("--local-latency", ports.local_latency, "Inside a node, seconds")
      ->capture_default_str()
      ->check(time);
  c->add_option("--local-bandwidth", a->local_bandwidth, "Inside a node, bytes per second")
      ->capture_default_str();
  c->add_option("--jitter", a->options.network.jitter,
                "Up to this many seconds are added to each message's latency")
      ->capture_default_str()
      ->check(time);
  c->add_option("--late", a->late, "RANK:SECONDS, a worker that arrives late; may be repeated");
  c->add_option("--chunk", a->options.engine.chunk,
                "With --verify: bytes per message of a large collective, 0: whole segments")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  c->add_option("--seed", a->options.network.seed, "Same seed, same run")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  c->add_flag("--verify", a->options.verify, "Carry real numbers and check every result");
  c->add_flag("--timing", a->timing, "Also say how fast the simulation itself ran");
  c->add_flag("--json", a->json, "Print one JSON object (docs/commands.md)");
  c->callback([a, simulate] {
    refuse_training_options(*simulate);
    run(*a);
  });
}

}  // namespace starling::tool
