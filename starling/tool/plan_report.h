// A plan as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "starling/model/plan.h"

namespace starling::tool {

// What was predicted, simulated and measured of one choice, seconds per step.
struct Verified {
  std::string name;
  double model = 0;
  double simulated = 0;
  double measured = 0;
  double interval = 0;  // half of the measured one's, 95 %
  double model_error() const { return model / measured - 1; }
  double simulation_error() const { return simulated / measured - 1; }
};

struct PlanReport {
  const model::Profile& profile;
  const model::Question& question;
  const model::Plan& plan;
  std::vector<Verified> verified;
};

std::string text_of(const PlanReport& report);
nlohmann::ordered_json json_of(const PlanReport& report);
// An SVG; the same bytes for the same rows. Requires: some rows.
std::string draw_verification(const std::vector<Verified>& rows);

}  // namespace starling::tool
