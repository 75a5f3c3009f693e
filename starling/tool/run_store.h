// Runs that are kept, so that a comparison that was interrupted goes on where it stopped. Of a run
// FOLDER/NAME/seed-3 there are
//   seed-3/        the run's own folder, with summary.json if it came to its end
//   seed-3.json    the words it was started with
//   seed-3.log     what its workers wrote
// Errors of the file system are Error{Environment}. Threads: one.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "starling/base/folder_lock.h"
#include "starling/tool/words.h"

namespace starling::tool {

struct StoredRun {
  std::filesystem::path folder;
  Words words;  // after `starling train`, but for --out

  std::filesystem::path log() const { return folder.string() + ".log"; }
  std::filesystem::path record() const { return folder.string() + ".json"; }
};

// Its summary if it came to its end. Throws Error{Input} if it did so with words of another
// meaning, naming the difference, or if what is there was not started from here.
std::optional<nlohmann::json> summary_of(const StoredRun& run);

// Forgets what an earlier attempt left, and notes its words.
void begin_run(const StoredRun& run);
// Notes how long it took, all in all.
void end_run(const StoredRun& run, double seconds);
// How long a run took that came to its end; 0 if nobody noted it.
double noted_seconds(const StoredRun& run);

// Whole or not at all.
void write_text(const std::filesystem::path& file, std::string_view text);

}  // namespace starling::tool
