// What a simulated training showed, as text and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "starling/sim/training.h"
#include "starling/tool/verdict.h"

namespace starling::tool {

// Around the mean of all steps, by batch means; none for less than two batches.
std::optional<Interval> step_interval(const sim::TrainingResult& result);

// `wall`: seconds that the simulation took, if they are to be told.
std::string training_text(const sim::TrainingOptions& options, const sim::TrainingResult& result,
                          std::optional<double> wall);

// `echo`: the options as given.
nlohmann::ordered_json training_json(const nlohmann::ordered_json& echo,
                                     const sim::TrainingResult& result, std::optional<double> wall);

}  // namespace starling::tool
