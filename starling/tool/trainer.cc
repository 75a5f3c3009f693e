#include "starling/tool/trainer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace starling::tool {

using launch::OnLoss;
using launch::Stream;

TrainerAnswer ask_trainer(Words command, const decltype(launch::Options::on_line)& on_line) {
  command.insert(command.begin() + 2, "--check");
  std::string answer;
  launch::Options options{.command = std::move(command)};
  options.on_line = [&](std::size_t worker, Stream stream, std::string_view line) {
    if (stream == Stream::Out && line.starts_with('{')) {
      answer = line;
    } else {
      on_line(worker, stream, line);
    }
  };
  TrainerAnswer asked{.plan = std::nullopt, .result = launch::launch(options)};
  if (!answer.empty() && !asked.result.interrupted_by && !asked.result.workers[0].has_failed()) {
    const nlohmann::json said = nlohmann::json::parse(answer);
    asked.plan = {.workers = said.at("workers"),
                  .threads = said.at("threads"),
                  .on_loss = said.at("on_loss") == "stop" ? OnLoss::Stop : OnLoss::Continue};
  }
  return asked;
}

launch::Options trainer_options(const TrainerPlan& plan, Words command, bool has_bar) {
  launch::Options options{
      .workers = plan.workers, .command = std::move(command), .on_loss = plan.on_loss};
  if (has_bar) {
    options.environment.emplace_back("STARLING_PROGRESS", "bar");
  }
  if (plan.threads > 0) {
    for (const char* name : {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
      options.environment.emplace_back(name, fmt::format("{}", plan.threads));
    }
  }
  return options;
}

}  // namespace starling::tool
