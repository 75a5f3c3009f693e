// Labelled images, whole in memory: bytes as the data set has them. What a batch of them looks like
// to a model is image_tensors.h.
//
// A data folder holds one folder per set, named like it: the caller's, or that of STARLING_DATA; if
// neither is given, where each set comes by itself:
//   fashion-mnist  /usr/share/datasets (the Debian package dataset-fashion-mnist)
//   cifar10        $XDG_CACHE_HOME/starling, or ~/.cache/starling (`starling data cifar10`)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace starling::workload {

struct Images {
  std::string name = "";
  // Image after image; of one image channel after channel, each row by row.
  std::vector<std::uint8_t> pixels = {};
  std::vector<std::uint8_t> labels = {};  // 0 … classes − 1
  std::size_t count = 0;
  std::size_t channels = 0;
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t classes = 0;
  // Of pixel / 255 by channel, in the training part: the test part has the same ones.
  std::array<double, 3> mean = {};
  std::array<double, 3> deviation = {};

  std::size_t image_size() const { return channels * height * width; }
};

struct ImageSet {
  Images train;
  Images test;
};

// Reads a set; every file is checked against the published digest of its content. `where`: a data
// folder, empty for the default. Throws Error{Input}, one line: the name is unknown, the set is not
// there (and what to run), a file is damaged (and which).
ImageSet load_images(std::string_view name, const std::filesystem::path& where = {});

// A set that can be loaded, whether or not it is there.
struct KnownSet {
  std::string_view name;
  std::string_view command;                 // what to run to have it
  std::span<const std::string_view> files;  // below its folder
  ImageSet (*read)(const std::filesystem::path& folder);
};
std::span<const KnownSet> known_sets();

// The folder of one set. Throws Error{Input} if neither HOME nor anything else says where it is.
std::filesystem::path folder_of(std::string_view name, const std::filesystem::path& where = {});

// The first file of the set that is not in `folder`; empty if all are.
std::filesystem::path missing_file(const KnownSet& set, const std::filesystem::path& folder);

// Sets mean and deviation of `train` from its pixels, and those of `test` to the same.
void measure(ImageSet& set);

}  // namespace starling::workload
