// The result of a comparison for people, and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "starling/tool/comparison_report.h"
#include "starling/tool/words.h"

namespace starling::tool {

// What was compared, beside the rows.
struct ComparisonFacts {
  Words words;  // of all runs
  std::vector<std::uint64_t> seeds;
  Yardstick yardstick;
  std::optional<double> seconds{};  // of the budget of time; none: what the baseline took
};

// Two tables: how good, and how fast; and what failed. `title`: of the budget.
std::string text_of_comparison(const std::string& title, const std::vector<Row>& rows,
                               const ComparisonFacts& facts);

// What the columns mean, and what is missing if runs have no curve. Rows may be empty: that budget
// was not asked for.
std::string legend_of_comparison(const std::vector<Row>& iterations, const std::vector<Row>& time,
                                 const ComparisonFacts& facts);

// Of the same rows.
nlohmann::ordered_json json_of_comparison(const std::vector<Row>& iterations,
                                          const std::vector<Row>& time,
                                          const ComparisonFacts& facts);

}  // namespace starling::tool
