#include "starling/workload/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "starling/base/error.h"
#include "starling/workload/digest.h"

namespace starling::workload {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "starling checkpoint 4";
constexpr std::string_view kPartial = ".partial";

// "step-0000000100" + ending.
std::optional<std::uint64_t> step_of(const std::string& name, std::string_view ending) {
  constexpr std::string_view kBegin = "step-";
  if (!name.starts_with(kBegin) || !name.ends_with(ending)) {
    return std::nullopt;
  }
  const char* const first = name.data() + kBegin.size();
  const char* const last = name.data() + name.size() - ending.size();
  std::uint64_t step = 0;
  const auto [end, error] = std::from_chars(first, last, step);
  return first < last && error == std::errc() && end == last ? std::optional(step) : std::nullopt;
}

std::vector<FoundCheckpoint> list(const fs::path& checkpoints, std::string_view ending) {
  std::vector<FoundCheckpoint> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoints, error)) {
    if (const auto step = step_of(entry.path().filename().string(), ending)) {
      found.push_back({*step, entry.path()});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const FoundCheckpoint& a, const FoundCheckpoint& b) { return a.step < b.step; });
  return found;
}

std::string digest_of(std::string_view text) {
  return sha256(Pieces{std::as_bytes(std::span(text))});
}

// "", or what is wrong.
std::string fault_of(const fs::path& file, const FileFacts& facts,
                     std::span<const std::byte> bytes) {
  if (bytes.size() != facts.bytes) {
    return fmt::format("{} is torn: it has {} bytes, and the manifest says {}", file.string(),
                       bytes.size(), facts.bytes);
  }
  if (sha256(Pieces{bytes}) != facts.sha256) {
    return fmt::format("{} is altered: its checksum is not that of the manifest", file.string());
  }
  return "";
}

std::string fault_of(const fs::path& checkpoint, const FileFacts& facts) {
  const fs::path file = checkpoint / facts.name;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    return fmt::format("{} is missing", file.string());
  }
  try {
    return fault_of(file, facts, read_bytes(file));
  } catch (const Error& e) {
    return e.what();
  }
}

std::string suggestion(const fs::path& checkpoint) {
  std::vector<FoundCheckpoint> others = list_checkpoints(checkpoint.parent_path());
  std::reverse(others.begin(), others.end());
  for (const FoundCheckpoint& other : others) {
    if (other.folder != checkpoint && faults_of(other.folder).empty()) {
      return fmt::format("the newest good checkpoint is {}", other.folder.string());
    }
  }
  return "no other checkpoint of this run is good";
}

// "run/" is "run".
fs::path without_slash(const fs::path& given) {
  const fs::path normal = given.lexically_normal();
  return normal.filename().empty() ? normal.parent_path() : normal;
}

}  // namespace

FileFacts facts_of(std::string name, const Pieces& pieces) {
  std::uint64_t bytes = 0;
  for (const auto& piece : pieces) {
    bytes += piece.size();
  }
  return {.name = std::move(name), .bytes = bytes, .sha256 = sha256(pieces)};
}

ordered_json json_of(const FileFacts& facts) {
  return {{"name", facts.name}, {"bytes", facts.bytes}, {"sha256", facts.sha256}};
}

FileFacts file_facts_of(const ordered_json& json) {
  return {.name = json.at("name").get<std::string>(),
          .bytes = json.at("bytes").get<std::uint64_t>(),
          .sha256 = json.at("sha256").get<std::string>()};
}

ordered_json json_of(const Manifest& manifest) {
  ordered_json files = ordered_json::array();
  for (const FileFacts& file : manifest.files) {
    files.push_back(json_of(file));
  }
  ordered_json json = {{"format", kFormat},
                       {"step", manifest.step},
                       {"samples", manifest.samples},
                       {"train_seconds", manifest.train_seconds},
                       {"workers", manifest.workers},
                       {"ranks", manifest.ranks},
                       {"epoch", manifest.epoch},
                       {"step_of_epoch", manifest.step_of_epoch},
                       {"configuration", manifest.configuration},
                       {"files", files}};
  json["sha256"] = digest_of(json.dump());  // of all before
  return json;
}

Manifest read_manifest(const fs::path& checkpoint) {
  const fs::path file = checkpoint / kManifestFile;
  std::error_code error;
  require(fs::is_regular_file(file, error), "{} is missing", file.string());
  const std::vector<std::byte> bytes = read_bytes(file);
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  try {
    const ordered_json json = ordered_json::parse(text, text + bytes.size());
    require(json.at("format") == kFormat, "{} is of another format: {}", file.string(),
            json.at("format").dump());
    Manifest manifest;
    manifest.step = json.at("step").get<std::uint64_t>();
    manifest.samples = json.at("samples").get<double>();
    manifest.train_seconds = json.at("train_seconds").get<double>();
    manifest.workers = json.at("workers").get<std::uint32_t>();
    manifest.ranks = json.at("ranks").get<std::vector<std::uint32_t>>();
    manifest.epoch = json.at("epoch").get<std::uint64_t>();
    manifest.step_of_epoch = json.at("step_of_epoch").get<std::uint64_t>();
    manifest.configuration = json.at("configuration");
    for (const ordered_json& facts : json.at("files")) {
      manifest.files.push_back(file_facts_of(facts));
    }
    require(json_of(manifest) == json, "{} is altered: its checksum is not its own", file.string());
    require(!manifest.ranks.empty() && manifest.workers > 0, "{} is altered: it names no workers",
            file.string());
    return manifest;
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::Input,
                fmt::format("{} is torn or altered: it is not a manifest", file.string()));
  }
}

Manifest require_manifest(const fs::path& checkpoint) {
  try {
    return read_manifest(checkpoint);
  } catch (const Error& e) {
    throw Error(ErrorCode::Input, fmt::format("{}; {}", e.what(), suggestion(checkpoint)));
  }
}

fs::path checkpoints_of(const fs::path& run) { return run / "checkpoints"; }
fs::path checkpoint_folder(const fs::path& checkpoints, std::uint64_t step) {
  return checkpoints / fmt::format("step-{:010}", step);
}
fs::path partial_folder(const fs::path& checkpoints, std::uint64_t step) {
  return checkpoint_folder(checkpoints, step).string() + std::string(kPartial);
}
std::string worker_file(Rank worker) { return fmt::format("worker-{}.safetensors", worker.value); }

std::vector<FoundCheckpoint> list_checkpoints(const fs::path& checkpoints) {
  return list(checkpoints, "");
}
std::vector<FoundCheckpoint> list_partial(const fs::path& checkpoints) {
  return list(checkpoints, kPartial);
}

fs::path find_checkpoint(const fs::path& given) {
  std::error_code error;
  require(fs::is_directory(given, error), "there is no folder {}", given.string());
  fs::path folder = without_slash(given);
  if (step_of(folder.filename().string(), kPartial)) {
    throw Error(ErrorCode::Input, fmt::format("{} is not complete: whoever wrote it was killed; {}",
                                              folder.string(), suggestion(folder)));
  }
  if (step_of(folder.filename().string(), "") || fs::exists(folder / kManifestFile, error)) {
    return folder;
  }
  std::vector<FoundCheckpoint> found = list_checkpoints(checkpoints_of(folder));
  if (found.empty()) {
    found = list_checkpoints(folder);
  }
  require(!found.empty(), "there is no complete checkpoint in {}", folder.string());
  return found.back().folder;
}

std::vector<std::string> faults_of(const fs::path& checkpoint) {
  std::vector<std::string> faults;
  try {
    const Manifest manifest = read_manifest(checkpoint);
    const auto has = [&](const std::string& name) {
      return std::any_of(manifest.files.begin(), manifest.files.end(),
                         [&](const FileFacts& facts) { return facts.name == name; });
    };
    bool names_all = has(kConsensusFile);
    for (const std::uint32_t rank : manifest.ranks) {
      names_all = names_all && has(worker_file(Rank{rank}));
    }
    if (!names_all) {
      faults.push_back(fmt::format("{} is altered: it does not name every file",
                                   (checkpoint / kManifestFile).string()));
    }
    for (const FileFacts& facts : manifest.files) {
      if (std::string fault = fault_of(checkpoint, facts); !fault.empty()) {
        faults.push_back(std::move(fault));
      }
    }
  } catch (const Error& e) {
    faults.emplace_back(e.what());
  }
  return faults;
}

void require_whole(const fs::path& checkpoint) {
  const std::vector<std::string> faults = faults_of(checkpoint);
  if (!faults.empty()) {
    throw Error(ErrorCode::Input, fmt::format("{}; {}", faults.front(), suggestion(checkpoint)));
  }
}

Unpacked read_whole(const fs::path& checkpoint, const Manifest& manifest, const std::string& name) {
  const auto facts = std::find_if(manifest.files.begin(), manifest.files.end(),
                                  [&](const FileFacts& known) { return known.name == name; });
  require(facts != manifest.files.end(), "{} does not name {}",
          (checkpoint / kManifestFile).string(), name);
  const fs::path file = checkpoint / name;
  std::error_code error;
  const bool there = fs::is_regular_file(file, error);
  const std::vector<std::byte> bytes = there ? read_bytes(file) : std::vector<std::byte>();
  std::string fault =
      there ? fault_of(file, *facts, bytes) : fmt::format("{} is missing", file.string());
  if (fault.empty()) {
    try {
      return unpack(bytes);
    } catch (const Error& e) {
      fault = fmt::format("{}: {}", file.string(), e.what());
    }
  }
  throw Error(ErrorCode::Input, fmt::format("{}; {}", fault, suggestion(checkpoint)));
}

bool is_checkpoint_due(std::uint64_t done, std::uint64_t steps, std::uint64_t every,
                       std::uint64_t sync_period) {
  if (every == 0 || done == 0) {
    return false;
  }
  if (done == steps) {
    return true;
  }
  if (sync_period <= 1) {
    return done % every == 0;
  }
  return done % sync_period == 0 && done / every > (done - sync_period) / every;
}

}  // namespace starling::workload
