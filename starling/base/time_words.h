// Texts that users write about times: words between separators, numbers, seconds.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "starling/base/time.h"

namespace starling {

std::vector<std::string_view> split(std::string_view text, char at);

// Nothing if `word` is anything but such a number.
template <typename Number>
std::optional<Number> parse_number(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(number)
                                                                  : std::nullopt;
}

// `word` of `text`, at most an hour. Throws Error{Input} that names `what`, the text and the word.
double parse_seconds(std::string_view what, std::string_view text, std::string_view word);

inline Duration duration(double seconds) { return std::chrono::round<Duration>(Seconds(seconds)); }

}  // namespace starling
