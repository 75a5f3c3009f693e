#include "starling/tool/quality_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "starling/tool/svg.h"

namespace starling::tool {
namespace {

constexpr double kPanelWidth = 520;
constexpr double kPanelHeight = 360;
constexpr double kLeft = 62;  // of the axes in a panel
constexpr double kRight = 16;
constexpr double kTop = 34;
constexpr double kBottom = 52;
constexpr double kTitleHeight = 36;
constexpr double kLegendRow = 20;
constexpr int kMarks = 6;  // on a line
constexpr int kTicks = 8;  // on an axis, at most

// Of a curve at x, which lies between its ends.
double value_at(const Points& points, double x) {
  const auto after =
      std::lower_bound(points.begin(), points.end(), x,
                       [](const auto& point, double value) { return point.first < value; });
  if (after == points.end()) {
    return points.back().second;
  }
  if (after == points.begin() || after->first <= x) {
    return after->second;
  }
  const auto before = std::prev(after);
  const double part = (x - before->first) / (after->first - before->first);
  return before->second + part * (after->second - before->second);
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  // Some room, and never no width.
  Range widened(double part) const {
    if (empty()) {
      return {.low = 0, .high = 1};
    }
    const double room = std::max((high - low) * part, std::abs(high) * 1e-3 + 1e-9);
    return {.low = low - room, .high = high + room};
  }
};

// What a panel shows: all of x from 0 on; of y what there is after the first third, before which
// curves still climb, or all.
struct Axes {
  Range x;
  Range y;
  double at_x(double value) const {
    return kLeft + (value - x.low) / (x.high - x.low) * (kPanelWidth - kLeft - kRight);
  }
  double at_y(double value) const {
    return kPanelHeight - kBottom -
           (value - y.low) / (y.high - y.low) * (kPanelHeight - kTop - kBottom);
  }
};

Axes axes_of(const std::vector<Band>& bands, bool from_start) {
  Range x;
  for (const Band& band : bands) {
    for (const auto& [at, value] : band.mean) {
      x.include(at);
    }
  }
  Range y;
  for (const Band& band : bands) {
    for (std::size_t i = 0; i < band.mean.size(); ++i) {
      if (from_start || band.mean[i].first >= x.high / 3 || i + 1 == band.mean.size()) {
        y.include(band.low[i].second);
        y.include(band.high[i].second);
      }
    }
  }
  const double most = x.empty() ? 1 : std::max(x.high, 1e-9) * 1.02;
  return {.x = {.low = 0, .high = most}, .y = y.widened(0.06)};
}

void add_to(Band& band, double x, const std::vector<double>& values) {
  Range range;
  double sum = 0;
  for (const double value : values) {
    range.include(value);
    sum += value;
  }
  band.mean.emplace_back(x, sum / static_cast<double>(values.size()));
  band.low.emplace_back(x, range.low);
  band.high.emplace_back(x, range.high);
}

Band band_by_number(const std::vector<const Points*>& curves) {
  Band band;
  for (std::size_t i = 0; i < curves.front()->size(); ++i) {
    double x = 0;
    std::vector<double> values;
    for (const Points* points : curves) {
      x += (*points)[i].first;
      values.push_back((*points)[i].second);
    }
    add_to(band, x / static_cast<double>(curves.size()), values);
  }
  return band;
}

Band band_by_place(const std::vector<const Points*>& curves) {
  double first = 0;
  double last = std::numeric_limits<double>::infinity();
  std::set<double> places;
  for (const Points* points : curves) {
    first = std::max(first, points->front().first);
    last = std::min(last, points->back().first);
    for (const auto& point : *points) {
      places.insert(point.first);
    }
  }
  last = std::max(first, last);  // if they share nothing: where the last one begins
  Band band;
  for (const double x : places) {
    if (x >= first && x <= last) {
      std::vector<double> values;
      for (const Points* points : curves) {
        values.push_back(value_at(*points, x));
      }
      add_to(band, x, values);
    }
  }
  return band;
}

std::string draw_axes(const PlotPanel& panel, const Axes& axes) {
  const double bottom = kPanelHeight - kBottom;
  const double right = kPanelWidth - kRight;
  std::string out;
  const std::vector<double> columns = ticks_between(axes.x.low, axes.x.high, kTicks);
  for (const double value : columns) {
    const double x = axes.at_x(value);
    out += fmt::format("<path class=\"grid\" d=\"M{:.1f},{:.1f}V{:.1f}\"/>\n", x, kTop, bottom);
    out += text_at(x, bottom + 16, "middle", tick_text(value, columns[1] - columns[0]));
  }
  const std::vector<double> rows = ticks_between(axes.y.low, axes.y.high, kTicks);
  for (const double value : rows) {
    const double y = axes.at_y(value);
    out += fmt::format("<path class=\"grid\" d=\"M{:.1f},{:.1f}H{:.1f}\"/>\n", kLeft, y, right);
    out += text_at(kLeft - 6, y + 4, "end", tick_text(value, rows[1] - rows[0]));
  }
  out += fmt::format("<path class=\"axis\" d=\"M{:.1f},{:.1f}V{:.1f}H{:.1f}\"/>\n", kLeft, kTop,
                     bottom, right);
  out += text_at((kLeft + right) / 2, kTop - 12, "middle", panel.title, " class=\"title\"");
  out += text_at((kLeft + right) / 2, kPanelHeight - 14, "middle", panel.x_title);
  const double middle = (kTop + bottom) / 2;
  out += fmt::format(
      "<text transform=\"translate(16,{:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      middle, escaped(panel.y_title));
  return out;
}

std::string path_of(const Points& points, const Axes& axes, char first) {
  std::string path;
  for (const auto& [x, y] : points) {
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? first : 'L', axes.at_x(x), axes.at_y(y));
  }
  return path;
}

std::string draw_curve(const Band& band, const Axes& axes, const Look& look) {
  if (band.mean.empty()) {
    return "";
  }
  const Points back(band.low.rbegin(), band.low.rend());
  std::string out = fmt::format(
      "<path class=\"band\" fill=\"{}\" d=\"{}{}Z\"/>\n"
      "<path class=\"line\" stroke=\"{}\" stroke-dasharray=\"{}\" d=\"{}\"/>\n",
      look.colour, path_of(band.high, axes, 'M'), path_of(back, axes, 'L'), look.colour,
      *look.dashes == 0 ? "none" : look.dashes, path_of(band.mean, axes, 'M'));
  const double end = band.mean.back().first;
  const double begin = band.mean.front().first;
  for (int i = 1; i <= kMarks; ++i) {
    const double x = begin + (end - begin) * i / kMarks;
    out += fmt::format(
        "<path class=\"mark\" fill=\"{}\" transform=\"translate({:.1f},{:.1f})\" d=\"{}\"/>\n",
        look.colour, axes.at_x(x), axes.at_y(value_at(band.mean, x)), look.mark);
  }
  return out;
}

std::string draw_panel(const PlotPanel& panel, double x, double y, int number) {
  std::vector<Band> bands;
  for (const PlotCurve& curve : panel.curves) {
    bands.push_back(band_of(curve.seeds));
  }
  const Axes axes = axes_of(bands, panel.from_start);
  std::string out = fmt::format("<g transform=\"translate({:.1f},{:.1f})\">\n", x, y);
  out += draw_axes(panel, axes);
  out += fmt::format(
      "<clipPath id=\"panel{}\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
      "height=\"{:.1f}\"/></clipPath>\n<g clip-path=\"url(#panel{})\">\n",
      number, kLeft, kTop, kPanelWidth - kLeft - kRight, kPanelHeight - kTop - kBottom, number);
  for (std::size_t i = 0; i < bands.size(); ++i) {
    out += draw_curve(bands[i], axes, look_of(i));
  }
  return out + "</g>\n</g>\n";
}

std::string draw_legend(const std::vector<PlotCurve>& curves, double y, const std::string& note) {
  std::string out;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Look look = look_of(i);
    const double at = y + kLegendRow * static_cast<double>(i);
    out += fmt::format(
        "<path class=\"line\" stroke=\"{}\" stroke-dasharray=\"{}\" d=\"M{:.1f},{:.1f}h60\"/>\n"
        "<path class=\"mark\" fill=\"{}\" transform=\"translate({:.1f},{:.1f})\" d=\"{}\"/>\n",
        look.colour, *look.dashes == 0 ? "none" : look.dashes, kLeft, at, look.colour, kLeft + 30,
        at, look.mark);
    out += text_at(kLeft + 70, at + 4, "start", curves[i].name);
  }
  return out +
         text_at(kLeft, y + kLegendRow * static_cast<double>(curves.size()) + 4, "start", note);
}

}  // namespace

Band band_of(const std::vector<Points>& seeds) {
  std::vector<const Points*> curves;
  for (const Points& points : seeds) {
    if (!points.empty()) {
      curves.push_back(&points);
    }
  }
  if (curves.empty()) {
    return {};
  }
  const bool is_even = std::all_of(curves.begin(), curves.end(), [&](const Points* points) {
    return points->size() == curves.front()->size();
  });
  return is_even ? band_by_number(curves) : band_by_place(curves);
}

std::string draw_plot(const std::string& title, const std::vector<std::vector<PlotPanel>>& lines,
                      const std::string& note) {
  std::size_t columns = 0;
  for (const std::vector<PlotPanel>& line : lines) {
    columns = std::max(columns, line.size());
  }
  const std::vector<PlotCurve> named = columns == 0 ? std::vector<PlotCurve>() : lines[0][0].curves;
  const double width = kPanelWidth * static_cast<double>(columns);
  const double legend = kTitleHeight + kPanelHeight * static_cast<double>(lines.size());
  const double height = legend + kLegendRow * (static_cast<double>(named.size()) + 2);
  std::string out;
  int number = 0;
  for (std::size_t line = 0; line < lines.size(); ++line) {
    for (std::size_t column = 0; column < lines[line].size(); ++column) {
      out += draw_panel(lines[line][column], kPanelWidth * static_cast<double>(column),
                        kTitleHeight + kPanelHeight * static_cast<double>(line), number++);
    }
  }
  return svg_of(width, height, title, out + draw_legend(named, legend + 8, note));
}

}  // namespace starling::tool
