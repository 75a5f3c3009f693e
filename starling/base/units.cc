#include "starling/base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <memory>

#include "starling/base/error.h"

namespace starling {
namespace {

struct Suffix {
  std::string_view text;
  double factor;
};

constexpr std::array<Suffix, 10> kSuffixes = {{{"", 1},
                                               {"B", 1},
                                               {"K", 1e3},
                                               {"M", 1e6},
                                               {"G", 1e9},
                                               {"T", 1e12},
                                               {"KI", 1024.0},
                                               {"MI", 1048576.0},
                                               {"GI", 1073741824.0},
                                               {"TI", 1099511627776.0}}};

}  // namespace

Bytes parse_bytes(std::string_view text) {
  double number = 0;
  const char* const end = std::to_address(text.end());
  const auto [rest, error] = std::from_chars(std::to_address(text.begin()), end, number);
  std::string suffix;
  for (const char* c = rest; c != end; ++c) {
    if (*c != ' ') {
      suffix.push_back(*c >= 'a' && *c <= 'z' ? static_cast<char>(*c - 'a' + 'A') : *c);
    }
  }
  if (suffix.size() > 1 && suffix.back() == 'B') {
    suffix.pop_back();
  }
  if (error == std::errc() && number >= 0) {
    for (const Suffix& known : kSuffixes) {
      const double bytes = number * known.factor;
      if (suffix == known.text && bytes < 9.0e18) {
        return {static_cast<std::uint64_t>(std::llround(bytes))};
      }
    }
  }
  require(false,
          "'{}' is not a size: write a number, with K, M, G (powers of 1000) or Ki, Mi, Gi "
          "(powers of 1024) if you like, such as 100M",
          text);
  return {};
}

std::string to_string(Bytes bytes) {
  constexpr std::array<const char*, 7> kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double number = static_cast<double>(bytes.value);
  std::size_t unit = 0;
  while (number >= 999.95 && unit + 1 < kUnits.size()) {
    number /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes.value)
                   : fmt::format("{:.1f} {}", number, kUnits[unit]);
}

}  // namespace starling
