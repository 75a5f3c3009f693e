// What the ledger costs the engine: time per row, JSON and file included. Target: under 1 % of a
// step, which has two rows.
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "starling/base/time.h"
#include "starling/comm/ledger.h"

namespace {

using namespace starling;

double seconds_per_row(std::size_t members, const std::string& path) {
  comm::Ledger ledger(Rank{0}, false, comm::ledger_file(path));
  comm::Outcome round;
  for (std::uint32_t r = 0; r < members; ++r) {
    round.members.push_back(Rank{r});
    round.steps.push_back(Step{12345});
  }
  constexpr std::uint64_t kRows = 100'000;
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t v = 0; v < kRows / 2; ++v) {
    round.version = v;
    ledger.note(round);
    comm::PickUp pick_up;
    pick_up.step = Step{static_cast<std::int64_t>(v)};
    pick_up.version = v;
    ledger.note(pick_up);
  }
  ledger.flush();
  return seconds(std::chrono::steady_clock::now() - start) / static_cast<double>(kRows);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "/tmp/starling_ledger_bench.jsonl";
  fmt::print("{:>8} {:>12} {:>34}\n", "members", "µs per row",
             "steps for which that is 1 %, in ms");
  for (const std::size_t members : {2, 8, 32}) {
    const double row = seconds_per_row(members, path);
    fmt::print("{:>8} {:>12.2f} {:>34.3f}\n", members, row * 1e6, 2 * row * 1e3 / 0.01);
  }
  std::remove(path.c_str());
}
