#include "starling/tool/training_run.h"

#include <fmt/format.h>

#include <fstream>

#include "starling/base/error.h"
#include "starling/tool/programs.h"

namespace starling::tool {

std::vector<std::string> pairs_of(const std::string& algorithm) {
  if (algorithm == "dadam" || algorithm == "accum-adam") {
    return {"--schedule", "exponential"};
  }
  if (algorithm == "wagma" || algorithm == "starling") {
    return {"--group-size", "2"};
  }
  return {};
}

nlohmann::json run_training(const TrainingRun& run, const std::filesystem::path& folder) {
  launch::Options options;
  options.workers = run.workers;
  options.command = {find_trainer(),
                     "images",
                     "--model",
                     run.model,
                     "--algorithm",
                     run.algorithm,
                     "--optimizer",
                     "adamw",
                     "--lr-schedule",
                     "constant",
                     "--steps",
                     fmt::format("{}", run.steps + run.warm_up_steps),
                     "--warm-up-steps",
                     fmt::format("{}", run.warm_up_steps),
                     "--no-evaluation",
                     "--on-loss",
                     "stop",
                     "--out",
                     folder.string()};
  for (const std::vector<std::string>& more : {pairs_of(run.algorithm), run.options}) {
    options.command.insert(options.command.end(), more.begin(), more.end());
  }
  run_program(options, fmt::format("{}, {} with {} workers", run.model, run.algorithm, run.workers),
              [](const nlohmann::json&) {});
  std::ifstream file(folder / "summary.json");
  require(file.is_open(), "{} was not written", (folder / "summary.json").string());
  return nlohmann::json::parse(file);
}

}  // namespace starling::tool
