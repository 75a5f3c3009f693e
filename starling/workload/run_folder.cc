#include "starling/workload/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <system_error>

#include "starling/base/error.h"
#include "starling/base/folder_lock.h"
#include "starling/workload/durable_file.h"

namespace starling::workload {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(std::string_view what, const fs::path& path, const std::string& why) {
  throw Error(ErrorCode::Environment, fmt::format("cannot {} {}: {}", what, path.string(), why));
}

// But for the lock of a run that was killed before it had written anything.
bool holds_nothing(const fs::path& folder) {
  std::error_code error;
  return std::all_of(fs::directory_iterator(folder, error), fs::directory_iterator(),
                     [](const fs::directory_entry& entry) {
                       return entry.path().filename() == FolderLock::kFile;
                     });
}

// False if it was there.
bool make_folder(const fs::path& folder) {
  std::error_code error;
  const bool made = fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error)) {
    fail("make the folder", folder,
         error ? error.message() : "there is a file of that name already");
  }
  return made;
}

fs::path make_named_folder(const fs::path& folder) {
  if (!make_folder(folder) && !holds_nothing(folder)) {
    fail("write to", folder, "it holds files already, which are not overwritten");
  }
  return folder;
}

}  // namespace

fs::path make_run_folder(const std::string& wanted, std::string_view words) {
  if (!wanted.empty()) {
    return make_named_folder(fs::path(wanted).lexically_normal());
  }
  const std::string name =
      fmt::format("{:%Y-%m-%d-%H%M%S}-{}", fmt::localtime(std::time(nullptr)), words);
  fs::path folder = fs::path("runs") / name;
  for (int number = 2; !make_folder(folder); ++number) {
    folder = fs::path("runs") / fmt::format("{}-{}", name, number);
  }
  return folder;
}

std::string text_of(const nlohmann::ordered_json& value) { return value.dump(2) + "\n"; }

void write_json(const fs::path& file, const nlohmann::ordered_json& value) {
  write_durably(file, text_of(value));
}

fs::path metrics_file(const fs::path& folder, Rank worker) {
  return folder / fmt::format("metrics-{}.jsonl", worker.value);
}

fs::path ledger_file(const fs::path& folder, Rank worker) {
  return folder / fmt::format("ledger-{}.jsonl", worker.value);
}

std::vector<nlohmann::ordered_json> continue_files(const fs::path& folder, Rank worker,
                                                   std::uint64_t step, bool ended) {
  std::error_code error;
  const fs::path ledger = ledger_file(folder, worker);
  fs::rename(ledger, folder / fmt::format("ledger-{}.before-{}.jsonl", worker.value, step), error);
  const fs::path metrics = metrics_file(folder, worker);
  std::vector<nlohmann::ordered_json> kept;
  std::string text;
  std::ifstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(line, nullptr, false);
    if (!json.is_object()) {
      continue;  // torn
    }
    const auto at = json.value("step", std::uint64_t{0});
    if (at < step || (at == step && !ended && json.value("kind", "") == "evaluation")) {
      text += line + "\n";
      kept.push_back(std::move(json));
    }
  }
  if (lines.is_open()) {
    write_durably(metrics, text);
  }
  return kept;
}

void say_lost(const std::string& why) {
  std::fputs(fmt::format("{}; training goes on without it\n", why).c_str(), stderr);
  std::fflush(stderr);
}

Metrics::Metrics(const fs::path& folder, Rank worker, bool appends) {
  file_.emplace(metrics_file(folder, worker),
                appends ? LineFile::Begin::AtTheEnd : LineFile::Begin::Anew);
}

void Metrics::write(const nlohmann::ordered_json& line) {
  lines_ += line.dump() + "\n";
  constexpr std::size_t kMost = 1 << 16;
  if (lines_.size() > kMost ||
      std::chrono::steady_clock::now() - flushed_ > std::chrono::seconds(1)) {
    flush();
  }
}

void Metrics::flush() {
  flushed_ = std::chrono::steady_clock::now();
  attempt([this] { file_->write(lines_); });
  lines_.clear();
}

void Metrics::close() {
  flush();
  attempt([this] { file_->close(); });
  file_.reset();
}

template <typename Act>
void Metrics::attempt(const Act& act) {
  if (!file_) {
    return;
  }
  try {
    act();
  } catch (const Error& e) {
    file_.reset();
    lost_ = true;
    say_lost(e.what());
  }
}

}  // namespace starling::workload
