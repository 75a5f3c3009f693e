#include "starling/tool/figures_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "starling/base/error.h"
#include "starling/tool/model_figures.h"
#include "starling/tool/run_store.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;

void run(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (!fs::is_directory(folder)) {
    throw Error(ErrorCode::Environment, fmt::format("cannot create the folder {}", folder));
  }
  for (const ModelFigure& figure : model_figures()) {
    const fs::path file = fs::path(folder) / figure.file;
    write_text(file, figure.draw());
    fmt::print("{}\n", file.string());
  }
}

}  // namespace

void add_figures_command(CLI::App& plan) {
  CLI::App* command = plan.add_subcommand(
      "figures", "Draw the runtime model: timelines, what each factor gains, speed-up (SVG)");
  auto folder = std::make_shared<std::string>();
  command->add_option("--out", *folder, "Folder for the pictures; made if it is not there")
      ->required();
  command->callback([folder] { run(*folder); });
}

}  // namespace starling::tool
