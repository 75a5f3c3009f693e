// Curves of quality as an SVG picture: panels with axes, for each curve the mean over seeds as a
// line and what lies between its worst and best seed as a band; lines differ in dashes and marks
// too, not in colour alone. No torch, no fonts: text is text. Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace starling::tool {

using Points = std::vector<std::pair<double, double>>;  // x rises

struct PlotCurve {
  std::string name;
  std::vector<Points> seeds{};  // those without points are left out
};

struct PlotPanel {
  std::string title;
  std::string x_title;
  std::string y_title;
  std::vector<PlotCurve> curves{};
};

// One line of panels below the other; the legend names the curves of the first.
std::string draw_plot(const std::string& title, const std::vector<std::vector<PlotPanel>>& lines);

// Mean, least and most of several curves: of their first points, their second ones and so on, at
// the mean of x. If they have not as many, at every x of any of them that lies within all, by
// straight lines between points. Requires: x not negative.
struct Band {
  Points mean;
  Points low;
  Points high;
};
Band band_of(const std::vector<Points>& seeds);

// About `count` round numbers from `low` to `high`, in steps of 1, 2 or 5 times a power of ten.
// Requires: low < high.
std::vector<double> ticks_between(double low, double high, int count);

}  // namespace starling::tool
