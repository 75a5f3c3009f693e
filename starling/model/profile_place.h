// Reads values out of a profile's JSON; whatever is wrong is refused with file, line and key.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/json_line.h"

namespace starling::model {

// A value in the file, and where it is. What it is made of outlives it.
class ProfilePlace {
 public:
  ProfilePlace(const std::string& file, const std::string& text,
               const nlohmann::ordered_json& value, std::string pointer)
      : file_(file), text_(text), value_(value), pointer_(std::move(pointer)) {}

  template <typename... Arguments>
  [[noreturn]] void refuse(fmt::format_string<Arguments...> format,
                           Arguments&&... arguments) const {
    throw Error(ErrorCode::Input,
                fmt::format("{}:{}: {}: {}", file_, json_line(text_, pointer_),
                            pointer_.empty() ? "the profile" : pointer_.substr(1),
                            fmt::format(format, std::forward<Arguments>(arguments)...)));
  }

  ProfilePlace at(const std::string& key) const {
    if (!value_.is_object() || !value_.contains(key)) {
      refuse("'{}' is missing", key);
    }
    return {file_, text_, value_.at(key), pointer_ + "/" + key};
  }
  std::vector<ProfilePlace> list() const {
    if (!value_.is_array()) {
      refuse("a list is expected here");
    }
    std::vector<ProfilePlace> places;
    for (std::size_t i = 0; i < value_.size(); ++i) {
      places.push_back({file_, text_, value_.at(i), fmt::format("{}/{}", pointer_, i)});
    }
    return places;
  }
  bool is_null() const { return value_.is_null(); }

  std::string word() const {
    if (!value_.is_string()) {
      refuse("a text is expected here");
    }
    return value_.get<std::string>();
  }
  bool flag() const {
    if (!value_.is_boolean()) {
      refuse("true or false is expected here");
    }
    return value_.get<bool>();
  }
  // Not negative.
  double number() const {
    if (!value_.is_number() || !(value_.get<double>() >= 0)) {
      refuse("{} is not a number of 0 or more", value_.dump());
    }
    return value_.get<double>();
  }
  // Seconds: a clock can count them.
  double time() const {
    constexpr double kMost = 1e6;
    if (number() > kMost) {
      refuse("{} s are more than a measured time can be", value_.dump());
    }
    return number();
  }
  template <typename Whole>
  Whole whole(Whole least = 0) const {
    if (!value_.is_number_unsigned() || value_.get<std::uint64_t>() < least) {
      refuse("{} is not a whole number of {} or more", value_.dump(), least);
    }
    if (value_.get<std::uint64_t>() > std::numeric_limits<Whole>::max()) {
      refuse("{} is too large", value_.dump());
    }
    return value_.get<Whole>();
  }

 private:
  const std::string& file_;
  const std::string& text_;
  const nlohmann::ordered_json& value_;
  std::string pointer_;
};

}  // namespace starling::model
