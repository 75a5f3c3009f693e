#include "starling/tool/run_store.h"

#include <fmt/format.h>

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

}  // namespace

std::optional<json> summary_of(const StoredRun& run) {
  const std::optional<json> record = read(run.record());
  if (!record) {
    require(!fs::exists(run.folder), "{} was not started by this comparison; choose another --out",
            run.folder.string());
    return std::nullopt;
  }
  std::optional<json> summary = read(run.folder / "summary.json");
  const std::string difference = difference_of(run.words, record->at("words").get<Words>());
  require(!summary || difference.empty(), "{} was run with other words ({}); choose another --out",
          run.folder.string(), difference);
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
