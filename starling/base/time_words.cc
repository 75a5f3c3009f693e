#include "starling/base/time_words.h"

#include "starling/base/error.h"

namespace starling {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> words;
  for (std::size_t end = 0; (end = text.find(at)) != std::string_view::npos;) {
    words.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  words.push_back(text);
  return words;
}

double parse_seconds(std::string_view what, std::string_view text, std::string_view word) {
  constexpr double kMostSeconds = 3600;
  const auto value = parse_number<double>(word);
  require(value && *value >= 0 && *value <= kMostSeconds,
          "{} '{}': '{}' is not a time; allowed are 0 to {} seconds", what, text, word,
          kMostSeconds);
  return *value;
}

}  // namespace starling
