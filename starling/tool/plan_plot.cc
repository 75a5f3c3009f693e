// Predicted against measured step times: on the line they are the same.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "starling/tool/plan_report.h"
#include "starling/tool/svg.h"

namespace starling::tool {
namespace {

constexpr double kSize = 360;
constexpr double kLeft = 70;
constexpr double kTop = 40;
constexpr double kLegend = 250;

struct Scale {
  double low;
  double high;
  double x(double ms) const { return kLeft + kSize * (ms - low) / (high - low); }
  double y(double ms) const { return kTop + kSize - kSize * (ms - low) / (high - low); }
};

std::string mark_at(double x, double y, const Look& look, bool filled) {
  return fmt::format(
      "<path d=\"{}\" transform=\"translate({:.1f},{:.1f})\" stroke=\"{}\" fill=\"{}\"/>\n",
      look.mark, x, y, look.colour, filled ? look.colour : "#fff");
}

std::string line(const Scale& scale, double factor, const char* style) {
  return fmt::format(
      "<path class=\"axis\" style=\"{}\" d=\"M{:.1f},{:.1f}L{:.1f},{:.1f}\"/>\n", style,
      scale.x(scale.low * std::max(1.0, 1 / factor)), scale.y(scale.low * std::max(1.0, factor)),
      scale.x(scale.high / std::max(1.0, factor)), scale.y(scale.high * std::min(1.0, factor)));
}

}  // namespace

std::string draw_verification(const std::vector<Verified>& rows) {
  double low = 1e3 * rows.front().measured;
  double high = low;
  for (const Verified& row : rows) {
    for (const double time : {row.measured, row.model, row.simulated}) {
      low = std::min(low, 1e3 * time);
      high = std::max(high, 1e3 * time);
    }
  }
  const Scale scale{low - 0.1 * (high - low) - 1, high + 0.1 * (high - low) + 1};
  std::string body =
      fmt::format("<rect class=\"axis\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", kLeft,
                  kTop, kSize, kSize);
  const std::vector<double> ticks = ticks_between(scale.low, scale.high, 6);
  for (const double tick : ticks) {
    const std::string text = tick_text(tick, ticks[1] - ticks[0]);
    body += text_at(scale.x(tick), kTop + kSize + 18, "middle", text);
    body += text_at(kLeft - 8, scale.y(tick) + 4, "end", text);
  }
  body += text_at(kLeft + kSize / 2, kTop + kSize + 40, "middle", "measured, ms per step");
  body += text_at(18, kTop + kSize / 2, "middle", "predicted, ms per step",
                  fmt::format(" transform=\"rotate(-90 18 {:.0f})\"", kTop + kSize / 2).c_str());
  body += line(scale, 1, "stroke:#888");
  for (const double factor : {0.95, 1.05}) {
    body += line(scale, factor, "stroke:#bbb;stroke-dasharray:4,4");
  }
  double y = kTop + 10;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Verified& row = rows[i];
    const Look& look = look_of(i);
    body += mark_at(scale.x(1e3 * row.measured), scale.y(1e3 * row.model), look, true);
    body += mark_at(scale.x(1e3 * row.measured), scale.y(1e3 * row.simulated), look, false);
    body += mark_at(kLeft + kSize + 25, y - 4, look, true);
    body += text_at(kLeft + kSize + 38, y, "start", row.name);
    y += 20;
  }
  body += text_at(kLeft + kSize + 18, y + 14, "start", "filled: runtime model");
  body += text_at(kLeft + kSize + 18, y + 32, "start", "hollow: virtual network");
  body += text_at(kLeft + kSize + 18, y + 50, "start", "dashed: 5 % off");
  return svg_of(kLeft + kSize + kLegend, kTop + kSize + 60, "Predicted against measured", body);
}

}  // namespace starling::tool
