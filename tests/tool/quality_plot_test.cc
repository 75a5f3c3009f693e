// The picture is well-formed XML with what it should show; bands and ticks by hand.
#include "starling/tool/quality_plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "starling/tool/svg.h"
#include "tests/tool/tool.h"
#include "tests/tool/xml.h"

namespace starling::tool {
namespace {

TEST(Ticks, AreRoundAndWithin) {
  EXPECT_EQ(ticks_between(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(ticks_between(87, 93, 6), (std::vector<double>{87, 88, 89, 90, 91, 92, 93}));
  EXPECT_EQ(ticks_between(-3, 40, 4), (std::vector<double>{0, 20, 40}));
  for (double width = 0.0011; width < 1e7; width *= 1.37) {
    const std::vector<double> ticks = ticks_between(0.3 * width, 1.3 * width, 6);
    EXPECT_GE(ticks.size(), 2u) << width;
    EXPECT_LE(ticks.size(), 8u) << width;
    EXPECT_GE(ticks.front(), 0.3 * width * (1 - 1e-6));
    EXPECT_LE(ticks.back(), 1.3 * width * (1 + 1e-6));
  }
}

TEST(Band, IsMeanLeastAndMostPointByPoint) {
  const Band band = band_of({{{1, 10}, {2, 20}}, {}, {{3, 30}, {6, 24}}});
  EXPECT_EQ(band.mean, (Points{{2, 20}, {4, 22}}));
  EXPECT_EQ(band.low, (Points{{2, 10}, {4, 20}}));
  EXPECT_EQ(band.high, (Points{{2, 30}, {4, 24}}));
  EXPECT_TRUE(band_of({}).mean.empty());
  EXPECT_TRUE(band_of({{}, {}}).mean.empty());
}

TEST(Band, OfOtherwiseManyPointsIsWhereAllCurvesAre) {
  const Band band = band_of({{{0, 0}, {10, 10}}, {{5, 1}, {20, 4}, {30, 5}}});
  EXPECT_EQ(band.mean, (Points{{5, 3}, {10, 6}}));
  EXPECT_EQ(band.low, (Points{{5, 1}, {10, 2}}));
  EXPECT_EQ(band.high, (Points{{5, 5}, {10, 10}}));
  // They share nothing.
  EXPECT_EQ(band_of({{{1, 3}}, {{2, 5}, {3, 9}}}).mean, (Points{{2, 4}}));
}

PlotPanel panel_of(const std::string& title) {
  return {
      .title = title,
      .x_title = "iterations",
      .y_title = "accuracy & more",
      .curves = {{.name = "all <reduce>", .seeds = {{{10, 50}, {20, 80}}, {{10, 54}, {20, 84}}}},
                 {.name = "\"other\"", .seeds = {{{10, 40}, {20, 60}}}},
                 {.name = "failed", .seeds = {}}}};
}

TEST(Plot, IsWellFormedAndNamesEverything) {
  const std::string svg =
      draw_plot("a & b", {{panel_of("left"), panel_of("right")}, {panel_of("below")}});
  const Xml xml = read_xml(svg);
  EXPECT_EQ(xml.fault, "");
  EXPECT_EQ(xml.counts.at("svg"), 1);
  EXPECT_EQ(xml.counts.at("clipPath"), 3);
  for (const std::string text :
       {"a &amp; b", "left", "right", "below", "iterations", "accuracy &amp; more",
        "all &lt;reduce&gt;", "&quot;other&quot;", "failed", "20"}) {
    EXPECT_TRUE(std::find(xml.texts.begin(), xml.texts.end(), text) != xml.texts.end()) << text;
  }
}

// Whoever sees no colour tells them apart by dashes.
TEST(Plot, LinesDifferInDashes) {
  const std::string svg = draw_plot("", {{panel_of("")}});
  for (const char* dashes : {"stroke-dasharray=\"none\"", "stroke-dasharray=\"7,3\""}) {
    EXPECT_TRUE(has(svg, dashes)) << dashes;
  }
}

// Those of seven, and of seven times as many: by any two of colour, dashes and mark.
TEST(Look, OfFortyNineCurvesIsNeverTheSame) {
  std::set<std::pair<std::string, std::string>> without_colour;
  std::set<std::pair<std::string, std::string>> without_dashes;
  std::set<std::pair<std::string, std::string>> without_mark;
  for (std::size_t i = 0; i < 49; ++i) {
    const Look look = look_of(i);
    EXPECT_TRUE(without_colour.emplace(look.dashes, look.mark).second) << i;
    EXPECT_TRUE(without_dashes.emplace(look.colour, look.mark).second) << i;
    EXPECT_TRUE(without_mark.emplace(look.colour, look.dashes).second) << i;
  }
}

// The line of the mean of two seeds runs through (10, 52) and (20, 82), within the axes.
TEST(Plot, DrawsTheMean) {
  const std::string svg = draw_plot("", {{panel_of("")}});
  const std::string line = "class=\"line\" stroke=\"#000000\" stroke-dasharray=\"none\" d=\"M";
  const std::size_t at = svg.find(line);
  ASSERT_NE(at, std::string::npos);
  double x0 = 0;
  double y0 = 0;
  double x1 = 0;
  double y1 = 0;
  ASSERT_EQ(std::sscanf(svg.c_str() + at + line.size(), "%lf,%lfL%lf,%lf", &x0, &y0, &x1, &y1), 4);
  // x from 0 to 20.4 over 442 units; upwards is less.
  EXPECT_NEAR(x0, 62 + 442 * 10 / 20.4, 0.1);
  EXPECT_NEAR(x1, 62 + 442 * 20 / 20.4, 0.1);
  EXPECT_LT(y1, y0);
}

TEST(Plot, OfNothingIsAPictureToo) {
  EXPECT_EQ(read_xml(draw_plot("", {})).fault, "");
  const PlotPanel empty{.title = "t", .x_title = "x", .y_title = "y", .curves = {{.name = "a"}}};
  EXPECT_EQ(read_xml(draw_plot("", {{empty}})).fault, "");
  const PlotPanel point{
      .title = "t", .x_title = "x", .y_title = "y", .curves = {{.name = "a", .seeds = {{{5, 0}}}}}};
  EXPECT_EQ(read_xml(draw_plot("", {{point}})).fault, "");
  EXPECT_FALSE(has(draw_plot("", {{point}}), "nan"));
}

TEST(Xml, IsRefusedIfItIsNone) {
  const std::string head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  EXPECT_EQ(read_xml(head + "<a b=\"1\"><c/>x &amp; y</a>\n").fault, "");
  for (const std::string wrong :
       {"<a><b></a></b>", "<a>", "<a b=1/>", "<a>x & y</a>", "<a></a>x", "<a b=\"x & y\"/>"}) {
    EXPECT_NE(read_xml(head + wrong).fault, "") << wrong;
  }
}

}  // namespace
}  // namespace starling::tool
