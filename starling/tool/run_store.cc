#include "starling/tool/run_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "starling/base/error.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

[[noreturn]] void fail(std::string_view what, const fs::path& path, const std::string& why) {
  throw Error(ErrorCode::Environment, fmt::format("cannot {} {}: {}", what, path.string(), why));
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error)) {
    fail("make the folder", folder,
         error ? error.message() : "there is a file of that name already");
  }
}

// None: it is not there.
std::optional<json> read(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream.is_open()) {
    return std::nullopt;
  }
  json value = json::parse(stream, nullptr, false);
  require(!value.is_discarded(), "{} is no JSON", file.string());
  return value;
}

// An option with its value, from either of them on.
std::string part_of(const Words& words, std::size_t at) {
  if (at >= words.size()) {
    return "nothing";
  }
  const auto is_option = [&](std::size_t i) { return words[i].starts_with('-'); };
  if (!is_option(at) && at > 0 && is_option(at - 1)) {
    --at;
  }
  const bool has_value = is_option(at) && at + 1 < words.size() && !is_option(at + 1);
  return has_value ? fmt::format("'{} {}'", words[at], words[at + 1])
                   : fmt::format("'{}'", words[at]);
}

// The first words that are not the same.
std::string difference_of(const Words& now, const Words& then) {
  const auto [a, b] = std::mismatch(now.begin(), now.end(), then.begin(), then.end());
  return fmt::format("{} then, {} now", part_of(then, static_cast<std::size_t>(b - then.begin())),
                     part_of(now, static_cast<std::size_t>(a - now.begin())));
}

}  // namespace

std::optional<json> summary_of(const StoredRun& run) {
  const std::optional<json> record = read(run.record());
  if (!record) {
    require(!fs::exists(run.folder), "{} was not started by this comparison; choose another --out",
            run.folder.string());
    return std::nullopt;
  }
  std::optional<json> summary = read(run.folder / "summary.json");
  const auto words = record->at("words").get<Words>();
  require(!summary || words == run.words, "{} was run with other words ({}); choose another --out",
          run.folder.string(), difference_of(run.words, words));
  return summary;
}

void begin_run(const StoredRun& run) {
  make_folder(run.folder.parent_path());
  std::error_code error;
  fs::remove_all(run.folder, error);
  if (error) {
    fail("remove", run.folder, error.message());
  }
  write_text(run.record(), json({{"words", run.words}}).dump() + "\n");
}

void end_run(const StoredRun& run, double seconds) {
  write_text(run.record(), json({{"words", run.words}, {"seconds", seconds}}).dump() + "\n");
}

double noted_seconds(const StoredRun& run) {
  const std::optional<json> record = read(run.record());
  return record ? record->value("seconds", 0.0) : 0;
}

void write_text(const fs::path& file, std::string_view text) {
  const fs::path beside = file.string() + ".part";
  std::error_code error;
  {
    std::ofstream stream(beside, std::ios::binary);
    stream << text;
    stream.close();
    if (!stream) {
      const std::string why = std::generic_category().message(errno);
      fs::remove(beside, error);
      fail("write", file, why);
    }
  }
  fs::rename(beside, file, error);
  if (error) {
    fail("write", file, error.message());
  }
}

}  // namespace starling::tool
