#include "starling/workload/image_data.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "starling/base/error.h"
#include "starling/base/suggestion.h"
#include "starling/workload/cifar10.h"
#include "starling/workload/fashion_mnist.h"

namespace starling::workload {
namespace {

namespace fs = std::filesystem;

constexpr KnownSet kSets[] = {
    {"fashion-mnist", "apt-get install dataset-fashion-mnist", kFashionMnistFiles,
     read_fashion_mnist},
    {"cifar10", "starling data cifar10", kCifar10Files, read_cifar10},
};

// Empty if it is not set.
fs::path from_environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value == nullptr ? "" : value;
}

fs::path cache_folder() {
  if (const fs::path cache = from_environment("XDG_CACHE_HOME"); cache.is_absolute()) {
    return cache / "starling";
  }
  const fs::path home = from_environment("HOME");
  require(!home.empty(), "where is the data? set STARLING_DATA to a folder, or HOME");
  return home / ".cache" / "starling";
}

const KnownSet& find_set(std::string_view name) {
  std::vector<std::string_view> names;
  for (const KnownSet& set : kSets) {
    if (set.name == name) {
      return set;
    }
    names.push_back(set.name);
  }
  throw Error(ErrorCode::Input,
              fmt::format("unknown data set '{}'; did you mean '{}'?", name, nearest(name, names)));
}

}  // namespace

std::span<const KnownSet> known_sets() { return kSets; }

fs::path folder_of(std::string_view name, const fs::path& where) {
  if (!where.empty()) {
    return where / name;
  }
  if (const fs::path data = from_environment("STARLING_DATA"); !data.empty()) {
    return data / name;
  }
  return (name == "fashion-mnist" ? fs::path("/usr/share/datasets") : cache_folder()) / name;
}

fs::path missing_file(const KnownSet& set, const fs::path& folder) {
  for (const std::string_view file : set.files) {
    std::error_code ignored;
    if (!fs::is_regular_file(folder / file, ignored)) {
      return folder / file;
    }
  }
  return "";
}

ImageSet load_images(std::string_view name, const fs::path& where) {
  const KnownSet& set = find_set(name);
  const fs::path folder = folder_of(name, where);
  const fs::path missing = missing_file(set, folder);
  const bool chosen = where.empty() && !from_environment("STARLING_DATA").empty();
  require(missing.empty(), "the data set {} is not in {}{} ({} is missing); run: {}", name,
          folder.string(), chosen ? ", where STARLING_DATA says" : "", missing.filename().string(),
          set.command);
  return set.read(folder);
}

void measure(ImageSet& set) {
  Images& train = set.train;
  const std::size_t plane = train.height * train.width;
  std::array<std::array<std::uint64_t, 256>, 3> count{};
  for (std::size_t at = 0; at < train.pixels.size(); at += plane) {
    auto& of_channel = count[at / plane % train.channels];
    for (std::size_t i = at; i < at + plane; ++i) {
      ++of_channel[train.pixels[i]];
    }
  }
  const double pixels = static_cast<double>(train.count * plane);
  for (std::size_t channel = 0; channel < train.channels; ++channel) {
    double sum = 0;
    double squares = 0;
    for (std::size_t value = 0; value < 256; ++value) {
      const double x = static_cast<double>(value) / 255;
      sum += x * static_cast<double>(count[channel][value]);
      squares += x * x * static_cast<double>(count[channel][value]);
    }
    train.mean[channel] = sum / pixels;
    train.deviation[channel] =
        std::sqrt(std::max(0.0, squares / pixels - train.mean[channel] * train.mean[channel]));
  }
  set.test.mean = train.mean;
  set.test.deviation = train.deviation;
}

}  // namespace starling::workload
