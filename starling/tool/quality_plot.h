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
  bool from_start = false;  // y shows all of the curves, not only what follows their first third
};

// One line of panels below the other; the legend names the curves of the first, and ends in `note`.
std::string draw_plot(
    const std::string& title, const std::vector<std::vector<PlotPanel>>& lines,
    const std::string& note = "line: mean over seeds; band: from the worst to the best");

// Mean, least and most of several curves: of their first points, their second ones and so on, at
// the mean of x. If they have not as many, at every x of any of them that lies within all, by
// straight lines between points. Requires: x not negative.
struct Band {
  Points mean;
  Points low;
  Points high;
};
Band band_of(const std::vector<Points>& seeds);

}  // namespace starling::tool
