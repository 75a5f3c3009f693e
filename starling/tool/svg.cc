#include "starling/tool/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace starling::tool {
namespace {

constexpr Look kLooks[] = {
    {"#000000", "", "M-4,-4H4V4H-4Z"},
    {"#0072b2", "7,3", "M0,-5L5,4H-5Z"},
    {"#d55e00", "2,3", "M-5,0A5,5 0 1 0 5,0A5,5 0 1 0 -5,0Z"},
    {"#009e73", "10,3,2,3", "M0,-6L6,0L0,6L-6,0Z"},
    {"#cc79a7", "14,4", "M0,5L5,-4H-5Z"},
    {"#56b4e9", "5,2,2,2,2,2", "M-5,-1.5H-1.5V-5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5Z"},
    {"#e69f00", "1,2", "M-5,-5L0,-2L5,-5L2,0L5,5L0,2L-5,5L-2,0Z"},
};

}  // namespace

// Where colours come again, dashes have moved on by one and marks by two: any two of the three tell
// looks apart.
Look look_of(std::size_t number) {
  constexpr std::size_t kCount = std::size(kLooks);
  const std::size_t shift = number / kCount;
  return {.colour = kLooks[number % kCount].colour,
          .dashes = kLooks[(number + shift) % kCount].dashes,
          .mark = kLooks[(number + 2 * shift) % kCount].mark};
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return safe;
}

std::string tick_text(double value, double step) {
  const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  return fmt::format("{:.{}f}", value + 0.0, digits);
}

std::string text_at(double x, double y, const char* anchor, const std::string& text,
                    const char* more) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, more, escaped(text));
}

std::vector<double> ticks_between(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough * 0.999) {
      step = factor * power;
    }
  }
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) {
    ticks.push_back(k * step);
  }
  return ticks;
}

std::string svg_of(double width, double height, const std::string& title, const std::string& body,
                   const std::string& style) {
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<style>.grid{{stroke:#ddd;fill:none}}.axis{{stroke:#000;fill:none}}"
      ".line{{fill:none;stroke-width:1.8}}.band{{fill-opacity:0.15;stroke:none}}"
      ".mark{{stroke:#fff;stroke-width:0.7}}.title{{font-weight:bold}}{2}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height, style);
  // A long one is smaller: letters are about 0.6 of their size wide.
  const double size = std::clamp(width / 0.6 / static_cast<double>(title.size() + 2), 7.0, 15.0);
  out +=
      text_at(width / 2, 24, "middle", title, fmt::format(" font-size=\"{:.1f}\"", size).c_str());
  return out + body + "</svg>\n";
}

}  // namespace starling::tool
