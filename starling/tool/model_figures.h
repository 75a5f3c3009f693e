// Figures of the runtime model (docs/runtime-model.md) as SVG. Pure functions, seconds of computing
// at most; the same bytes every time.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace starling::tool {

// All-reduce and one step behind, three steps of three workers: F, B, C and U over time.
std::string draw_timelines();

// The three factors, each alone.
std::string draw_overlap();
std::string draw_links();
std::string draw_variance();

// Speed-up of one step behind over all-reduce, by cost of the exchange and variance.
std::string draw_surface();

struct ModelFigure {
  std::string_view file;
  std::string (*draw)();
};
std::span<const ModelFigure> model_figures();

}  // namespace starling::tool
