#include "starling/tool/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "starling/base/error.h"
#include "starling/comm/ledger.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kColumns = 84;

std::ifstream open(const fs::path& file) {
  std::ifstream lines(file);
  require(lines.is_open(), "{} cannot be read", file.string());
  return lines;
}

std::vector<StepSpan> read_steps(const fs::path& file, std::uint64_t first) {
  std::ifstream lines = open(file);
  std::vector<StepSpan> steps;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    if (row.at("kind") != "step" || row.at("step").get<std::uint64_t>() < first) {
      continue;
    }
    StepSpan& step = steps.emplace_back();
    step.step = row.at("step");
    step.begin = Time(Duration(row.at("begin").get<std::int64_t>()));
    step.end =
        step.begin + std::chrono::duration_cast<Duration>(Seconds(row.at("seconds").get<double>()));
  }
  return steps;
}

// A row of the drawing.
class Bar {
 public:
  Bar(Time begin, Duration column) : begin_(begin), column_(column), text_(kColumns, ' ') {}
  void fill(Time from, Time to, char mark) {
    const std::int64_t first = std::clamp<std::int64_t>((from - begin_) / column_, 0, kColumns);
    const std::int64_t last = std::clamp<std::int64_t>((to - begin_) / column_ + 1, 0, kColumns);
    for (std::int64_t i = first; i < last; ++i) {
      text_[static_cast<std::size_t>(i)] = mark;
    }
  }
  std::string text() const { return text_.substr(0, text_.find_last_not_of(' ') + 1); }

 private:
  Time begin_;
  Duration column_;
  std::string text_;
};

}  // namespace

std::vector<StepSpan> read_timeline(const fs::path& folder, Rank worker, std::uint64_t first) {
  std::vector<StepSpan> steps = read_steps(folder / fmt::format("metrics-{}.jsonl", worker), first);
  std::ifstream lines = open(folder / fmt::format("ledger-{}.jsonl", worker));
  std::map<std::uint64_t, std::pair<Time, Time>> rounds;
  std::map<std::uint64_t, comm::PickUp> pick_ups;
  for (const comm::LedgerRow& row : comm::read_ledger(lines)) {
    if (const auto* round = std::get_if<comm::Outcome>(&row.what)) {
      rounds[round->version] = {round->started, round->finished};
    } else {
      const auto& pick_up = std::get<comm::PickUp>(row.what);
      pick_ups[static_cast<std::uint64_t>(pick_up.step.value)] = pick_up;
    }
  }
  for (StepSpan& step : steps) {
    const auto pick_up = pick_ups.find(step.step);
    require(pick_up != pick_ups.end(), "the ledger of worker {} has no step {}", worker, step.step);
    step.waited = pick_up->second.waited;
    if (pick_up->second.version && rounds.contains(*pick_up->second.version)) {
      step.exchange = rounds[*pick_up->second.version];
    }
  }
  return steps;
}

std::string draw_timeline(std::span<const StepSpan> steps) {
  check(!steps.empty(), "a timeline of no steps");
  const Time begin = steps.front().begin;
  const Duration column = (steps.back().end - begin) / kColumns + Duration(1);
  Bar work(begin, column);
  Bar exchange(begin, column);
  Bar wait(begin, column);
  for (const StepSpan& step : steps) {
    work.fill(step.begin, step.end - step.waited, '#');
    work.fill(step.begin, step.begin, '|');
    if (step.exchange) {
      exchange.fill(step.exchange->first, step.exchange->second, '=');
    }
    if (!in_time(step)) {
      wait.fill(step.end - step.waited, step.end, 'w');
    }
  }
  return fmt::format("  step      {}\n  exchange  {}\n  waiting   {}\n", work.text(),
                     exchange.text(), wait.text());
}

}  // namespace starling::tool
