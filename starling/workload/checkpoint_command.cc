#include "starling/workload/checkpoint_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/workload/checkpoint.h"
#include "starling/workload/durable_file.h"

namespace starling::workload {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct Request {
  std::string folder;
  std::string out;
  bool json = false;
};

// One checkpoint, or all of a run.
std::vector<fs::path> checkpoints_in(const std::string& given) {
  const fs::path newest = find_checkpoint(given);
  if (fs::equivalent(newest, given)) {
    return {newest};
  }
  std::vector<fs::path> folders;
  for (const FoundCheckpoint& found : list_checkpoints(newest.parent_path())) {
    folders.push_back(found.folder);
  }
  return folders;
}

std::uint64_t bytes_of(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const FileFacts& file : manifest.files) {
    bytes += file.bytes;
  }
  return bytes;
}

void list(const Request& request) {
  ordered_json json = ordered_json::array();
  for (const fs::path& folder : checkpoints_in(request.folder)) {
    ordered_json row = {{"folder", folder.string()}};
    std::string line;
    try {
      const Manifest manifest = read_manifest(folder);
      row.update({{"step", manifest.step},
                  {"samples", manifest.samples},
                  {"workers", manifest.workers},
                  {"ranks", manifest.ranks},
                  {"bytes", bytes_of(manifest)}});
      line = fmt::format("step {:<10} {:>2} worker{} {:>9.1f} MB  {}", manifest.step,
                         manifest.ranks.size(), manifest.ranks.size() == 1 ? " " : "s",
                         1e-6 * static_cast<double>(bytes_of(manifest)), folder.string());
    } catch (const Error& e) {
      row["fault"] = e.what();
      line = fmt::format("damaged: {}", e.what());
    }
    if (!request.json) {
      fmt::print("{}\n", line);
    }
    json.push_back(row);
  }
  if (request.json) {
    fmt::print("{}\n", json.dump());
  }
}

// Throws the exit code if one is not whole.
void verify(const Request& request) {
  ordered_json json = ordered_json::array();
  bool all_whole = true;
  for (const fs::path& folder : checkpoints_in(request.folder)) {
    const std::vector<std::string> faults = faults_of(folder);
    all_whole = all_whole && faults.empty();
    json.push_back({{"folder", folder.string()}, {"whole", faults.empty()}, {"faults", faults}});
    if (request.json) {
      continue;
    }
    fmt::print("{} {}\n", faults.empty() ? "whole  " : "damaged", folder.string());
    for (const std::string& fault : faults) {
      fmt::print("        {}\n", fault);
    }
  }
  if (request.json) {
    fmt::print("{}\n", json.dump());
  }
  if (!all_whole) {
    throw CLI::RuntimeError(1);
  }
}

void export_consensus(const Request& request) {
  const fs::path checkpoint = find_checkpoint(request.folder);
  const Manifest manifest = require_manifest(checkpoint);
  const Unpacked consensus = read_whole(checkpoint, manifest, kConsensusFile);
  std::error_code error;
  require(!fs::exists(request.out, error), "{} is there already, and is not overwritten",
          request.out);
  const Packed packed = pack(consensus.tensors, consensus.metadata);
  write_durably(request.out, packed.pieces());
  if (request.json) {
    fmt::print("{}\n", ordered_json({{"file", request.out},
                                     {"step", manifest.step},
                                     {"tensors", consensus.tensors.size()}})
                           .dump());
  } else {
    fmt::print("{}: {} tensors, the average of {} worker{} after step {}\n", request.out,
               consensus.tensors.size(), manifest.ranks.size(),
               manifest.ranks.size() == 1 ? "" : "s", manifest.step);
  }
}

CLI::App* add(CLI::App& app, const char* name, const char* help, const char* folder,
              void (*run)(const Request&), const std::shared_ptr<Request>& request) {
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("folder", request->folder, folder)->required();
  command->add_flag("--json", request->json, "Print JSON");
  command->callback([=] { run(*request); });
  return command;
}

}  // namespace

void add_checkpoint_command(CLI::App& app) {
  CLI::App* checkpoint = app.add_subcommand(
      "checkpoint", "Checkpoints of a run: which there are, whether they are whole");
  checkpoint->require_subcommand(1);
  checkpoint->footer(
      "Checkpoints are written by `starling train images --checkpoint-every STEPS`, and gone on\n"
      "from by --resume. Exit codes: 0 done, 1 one is not whole, 2 wrong command line or input.");
  const auto request = std::make_shared<Request>();
  add(*checkpoint, "list", "The complete checkpoints of a run, oldest first",
      "The run, or one of its checkpoints", list, request);
  add(*checkpoint, "verify", "Whether every file is what its manifest says",
      "The run, or one of its checkpoints", verify, request);
  add(*checkpoint, "export", "The average of all workers, as one safetensors file",
      "The checkpoint, or a run: its newest", export_consensus, request)
      ->add_option("--out", request->out, "File to write, FILE.safetensors")
      ->required();
}

}  // namespace starling::workload
