#include "starling/tool/model_figures.h"

namespace starling::tool {

std::span<const ModelFigure> model_figures() {
  static constexpr ModelFigure kFigures[] = {{"timelines.svg", draw_timelines},
                                             {"factor-overlap.svg", draw_overlap},
                                             {"factor-links.svg", draw_links},
                                             {"factor-variance.svg", draw_variance},
                                             {"surface.svg", draw_surface}};
  return kFigures;
}

}  // namespace starling::tool
