// starling-train as the tool starts it: its command line is looked at once, before as many workers
// as there are would all say what is wrong.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include "starling/launch/launch.h"
#include "starling/tool/words.h"

namespace starling::tool {

// What a worker writes before the text of a bar if it is told to (workload/progress.h).
inline constexpr std::string_view kBarMark = "\x01";

// What the trainer says about its command line.
struct TrainerPlan {
  std::size_t workers = 1;
  std::size_t threads = 0;
  launch::OnLoss on_loss = launch::OnLoss::Continue;
};

struct TrainerAnswer {
  std::optional<TrainerPlan> plan;  // none: something is wrong, or help was asked for
  launch::Result result;
};

// `command`: the program, its subcommand, words. What it writes beside its answer goes to
// `on_line`.
TrainerAnswer ask_trainer(Words command, const decltype(launch::Options::on_line)& on_line);

// Workers as planned. `has_bar`: they write bars.
launch::Options trainer_options(const TrainerPlan& plan, Words command, bool has_bar);

}  // namespace starling::tool
