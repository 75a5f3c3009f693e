// The figures of the runtime model: well-formed, the same bytes every time, and with the numbers in
// them that they are to show.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "starling/base/error.h"
#include "starling/tool/figures_command.h"
#include "starling/tool/model_figures.h"
#include "tests/tool/xml.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;

int times_in(const Xml& xml, const std::string& text) {
  return static_cast<int>(std::count(xml.texts.begin(), xml.texts.end(), text));
}

TEST(Figures, TimelinesShowEveryTask) {
  const Xml xml = read_xml(draw_timelines());
  EXPECT_EQ(xml.fault, "");
  // Three workers, three steps, two algorithms; of all-reduce one update a step has its letter.
  EXPECT_EQ(times_in(xml, "F"), 18);
  for (const char* name : {"B1", "B2", "B3", "C1", "C2", "C3"}) {
    EXPECT_EQ(times_in(xml, name), 18) << name;
  }
  EXPECT_GE(times_in(xml, "U"), 9);
  EXPECT_EQ(draw_timelines(), draw_timelines());
}

TEST(Figures, FactorsAreWellFormed) {
  for (std::string (*draw)() : {draw_overlap, draw_links, draw_variance}) {
    const std::string svg = draw();
    const Xml xml = read_xml(svg);
    EXPECT_EQ(xml.fault, "");
    EXPECT_EQ(times_in(xml, "all-reduce"), 1);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg, draw());
  }
}

TEST(Figures, TheSurfaceShowsTheSpeedUp) {
  const Xml xml = read_xml(draw_surface());
  EXPECT_EQ(xml.fault, "");
  EXPECT_EQ(xml.counts.at("rect"), 1 + 2 * 13 * 8);
  // No variance: all-reduce takes U + max(1 + c / 4, 0.5 + c), one step behind max(1 + U, c).
  EXPECT_GE(times_in(xml, "1.28"), 1);  // 0.2 per bucket: U = 0.8, c = 1
  EXPECT_GE(times_in(xml, "1.72"), 1);  // c = 1.8
  EXPECT_GE(times_in(xml, "1.42"), 1);  // 0.2 in all, c = 1
  EXPECT_GE(times_in(xml, "1.58"), 1);  // c = 1.2
  EXPECT_GE(times_in(xml, "1.00"), 2);
}

TEST(Figures, TheCommandWritesThemAll) {
  const fs::path folder = fs::path(testing::TempDir()) / "starling-figures" / "new";
  fs::remove_all(folder.parent_path());
  CLI::App plan;
  add_figures_command(plan);
  testing::internal::CaptureStdout();
  plan.parse("figures --out " + folder.string());
  const std::string said = testing::internal::GetCapturedStdout();
  for (const ModelFigure& figure : model_figures()) {
    std::ifstream file(folder / figure.file, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str(), figure.draw()) << figure.file;
    EXPECT_NE(said.find(figure.file), std::string::npos);
  }
  // A folder that cannot be made is said in one line.
  std::ofstream(folder / "file") << "";
  EXPECT_THROW(plan.parse("figures --out " + (folder / "file" / "below").string()), Error);
  EXPECT_THROW(plan.parse("figures"), CLI::ParseError);
  fs::remove_all(folder.parent_path());
}

}  // namespace
}  // namespace starling::tool
