#include "starling/tool/compute_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/json_line.h"
#include "starling/base/time_words.h"

namespace starling::tool {
namespace {

using nlohmann::json;

constexpr double kMostSeconds = 3600;

class ComputeFile {
 public:
  explicit ComputeFile(const std::string& path) : path_(path) {
    std::ifstream file(path, std::ios::binary);
    require(file.good() && !std::filesystem::is_directory(path),
            "--compute {}: there is no such file", path);
    text_.assign(std::istreambuf_iterator<char>(file), {});
    try {
      list_ = json::parse(text_);
    } catch (const json::parse_error& e) {
      fail(line_at(text_, e.byte), "this is not JSON");
    } catch (const json::exception& e) {
      fail(line_of_quoted(text_, e.what()), "a number is too large");
    }
    if (!list_.is_array() || list_.empty()) {
      fail(1, "there must be a list of step times, with at least one");
    }
  }

  ComputeTimes times(std::uint64_t seed, double forward) const {
    if (list_[0].is_structured()) {
      std::vector<ComputeTime> steps;
      for (std::size_t i = 0; i < list_.size(); ++i) {
        steps.push_back(pair(i));
      }
      return {std::span<const ComputeTime>(steps), seed};
    }
    std::vector<double> steps;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      steps.push_back(seconds_of(list_[i], i, ""));
    }
    return {std::span<const double>(steps), seed, forward};
  }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& what) const {
    throw Error(ErrorCode::Input, fmt::format("{}, line {}: {}", path_, line, what));
  }
  // Where the key stands, or the entry.
  [[noreturn]] void fail_at(std::size_t index, std::string_view key,
                            const std::string& what) const {
    fail(json_line(text_,
                   key.empty() ? fmt::format("/{}", index) : fmt::format("/{}/{}", index, key)),
         fmt::format("step {}{}: {}", index, key.empty() ? "" : fmt::format(", {}", key), what));
  }

  double seconds_of(const json& value, std::size_t index, std::string_view key) const {
    if (!value.is_number()) {
      fail_at(index, key, fmt::format("{} is not a number of seconds", value.dump()));
    }
    const double time = value.get<double>();
    if (!(time >= 0 && time <= kMostSeconds)) {
      fail_at(index, key,
              fmt::format("{} is not a time; allowed are 0 to {} seconds", time, kMostSeconds));
    }
    return time;
  }

  ComputeTime pair(std::size_t index) const {
    const json& entry = list_[index];
    if (entry.is_array()) {
      if (entry.size() != 2) {
        fail_at(index, "", "a pair is [forward, backward]");
      }
      return {duration(seconds_of(entry[0], index, "")), duration(seconds_of(entry[1], index, ""))};
    }
    if (!entry.is_object()) {
      fail_at(index, "", fmt::format("{} among steps of forward and backward", entry.dump()));
    }
    ComputeTime step;
    for (const auto& [key, time] :
         {std::pair("forward", &step.forward), std::pair("backward", &step.backward)}) {
      if (!entry.contains(key)) {
        fail_at(index, "", fmt::format("there is no \"{}\"", key));
      }
      *time = duration(seconds_of(entry.at(key), index, key));
    }
    return step;
  }

  std::string path_;
  std::string text_;
  json list_;
};

}  // namespace

ComputeTimes read_compute_times(const std::string& text, std::uint64_t seed, double forward) {
  const bool is_file = text.ends_with(".json") || text.find('/') != std::string::npos ||
                       std::filesystem::is_regular_file(text);
  return is_file ? ComputeFile(text).times(seed, forward) : ComputeTimes(text, seed, forward);
}

}  // namespace starling::tool
