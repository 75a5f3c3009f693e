#include "starling/tool/side_by_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "starling/base/error.h"
#include "starling/tool/words.h"

namespace starling::tool {
namespace {

void print_row(const nlohmann::json& summary, double first_seconds) {
  const double seconds = summary.at("train_seconds");
  // Null without evaluation.
  const nlohmann::json& accuracy = summary.at("test_accuracy");
  const nlohmann::json& consensus = summary.at("consensus_relative");
  fmt::print("{:<12} {:>8} {:>9.1f}s {:>8.2f}x {:>10.0f} {:>9.1f}% {:>8.1f}% {:>10}\n",
             summary.at("algorithm").get<std::string>(),
             accuracy.is_null() ? "-" : fmt::format("{:.1f}", 100 * accuracy.get<double>()),
             seconds, first_seconds / seconds, summary.at("samples_per_second").get<double>(),
             100 * summary.at("waited_seconds").get<double>() / seconds,
             100 * summary.at("stale_fraction").get<double>(),
             consensus.is_null() ? "-" : fmt::format("{:.2e}", consensus.get<double>()));
}

}  // namespace

SeveralRuns several_runs(const Words& command) {
  SeveralRuns several;
  Words common = command;
  const std::optional<std::string> algorithms = take(common, "--algorithm");
  if (!algorithms || algorithms->find(',') == std::string::npos) {
    return several;
  }
  const std::optional<std::string> folder = take(common, "--out");
  several.json = std::erase(common, "--json") > 0;
  std::istringstream names(*algorithms);
  for (std::string name; std::getline(names, name, ',');) {
    require(!name.empty(), "--algorithm {}: an empty name", *algorithms);
    Words own = common;
    own.insert(own.end(), {"--algorithm", name, "--json"});
    if (folder) {
      own.insert(own.end(), {"--out", *folder + "/" + name});
    }
    several.runs.push_back({name, own});
  }
  return several;
}

void train_side_by_side(const SeveralRuns& several,
                        const std::function<nlohmann::json(std::size_t)>& train) {
  std::vector<nlohmann::json> summaries;
  for (const SeveralRuns::Run& run : several.runs) {
    fmt::print(stderr, "{} ({} of {})\n", run.algorithm, summaries.size() + 1, several.runs.size());
    summaries.push_back(train(summaries.size()));
  }
  if (several.json) {
    fmt::print("{}\n", nlohmann::json(summaries).dump(2));
    return;
  }
  fmt::print("\n{:<12} {:>8} {:>10} {:>9} {:>10} {:>10} {:>9} {:>10}\n", "algorithm", "test %",
             "time", "speed", "samples/s", "waiting", "stale", "consensus");
  for (const nlohmann::json& summary : summaries) {
    print_row(summary, summaries.front().at("train_seconds"));
  }
  fmt::print(
      "\ntest %: accuracy of the average of all models. speed: against the first. waiting: of a "
      "worker's time, for others.\nstale: contributions that were not of their step. consensus: "
      "distance of the models from their average, relative.\n");
}

}  // namespace starling::tool
