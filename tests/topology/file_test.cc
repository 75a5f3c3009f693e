#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "starling/base/error.h"
#include "starling/topology/analysis.h"
#include "tests/topology/dense.h"

namespace starling::topology {
namespace {

// A file that is gone when the test is over.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_(testing::TempDir() + "starling_schedule_" + std::to_string(::getpid()) + ".json") {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string name() const { return "file:" + path_; }

 private:
  std::string path_;
};

std::unique_ptr<Schedule> read(const std::string& text, std::uint32_t workers) {
  const TemporaryFile file(text);
  return make_schedule(file.name(), {.workers = workers});
}

std::string error_of(const std::string& text, std::uint32_t workers) {
  try {
    read(text, workers);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Input);
    return e.what();
  }
  return "no error";
}

TEST(File, GroupsAndEdges) {
  const auto schedule = read(R"({"workers": 4, "steps": [
      {"groups": [[3, 0], [1, 2]]},
      {"groups": [[0, 1, 2], [3]], "self_weight": 0.5},
      {"edges": [[0,0,0.5],[3,0,0.5],[1,1,0.5],[0,1,0.5],[2,2,0.5],[1,2,0.5],[3,3,0.5],[2,3,0.5]]}
    ]})",
                             4);
  const View view = View::full(4);
  EXPECT_EQ(schedule->period(view), 3);
  EXPECT_EQ(std::get<Group>(schedule->row(Step{3}, Rank{0}, view)), uniform_group({{0}, {3}}));
  const Matrix weighted = dense(*schedule, Step{1}, view);
  EXPECT_DOUBLE_EQ(weighted[0][0], 0.5);
  EXPECT_DOUBLE_EQ(weighted[0][2], 0.25);
  EXPECT_DOUBLE_EQ(weighted[3][3], 1);
  const Matrix directed = dense(*schedule, Step{2}, view);
  EXPECT_DOUBLE_EQ(directed[1][0], 0.5);
  EXPECT_DOUBLE_EQ(directed[0][1], 0);
  EXPECT_TRUE(analyse(*schedule, view).is_doubly_stochastic());
}

// The mixing rule of a non-uniform self-weight, from the first step on.
TEST(File, SelfWeightIsUsedFromTheFirstStepOn) {
  const auto schedule =
      read(R"({"workers": 3, "steps": [{"groups": [[0, 1, 2]], "self_weight": 0.6}]})", 3);
  const Matrix w = dense(*schedule, Step{0}, View::full(3));
  const std::vector<double> x = {1, 10, 100};
  for (std::size_t i = 0; i < 3; ++i) {
    double mixed = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      mixed += w[i][j] * x[j];
    }
    EXPECT_NEAR(mixed, 0.6 * x[i] + 0.4 / 2 * (111 - x[i]), 1e-12);
  }
}

// Directed edges, workers lost: rows and columns still sum to 1.
TEST(File, LostWorkersAreEliminated) {
  const std::string text = R"({"workers": 5, "steps": [{"edges": [
      [0,0,0.25],[4,0,0.75], [1,1,0.5],[0,1,0.5], [2,2,0.5],[1,2,0.5],
      [3,3,0.5],[2,3,0.5], [4,4,0.25],[3,4,0.5],[0,4,0.25]]}]})";
  const auto schedule = read(text, 5);
  EXPECT_TRUE(analyse(*schedule, View::full(5)).is_doubly_stochastic());
  for (std::uint32_t lost = 1; lost < 31; ++lost) {
    std::vector<Rank> live;
    for (std::uint32_t r = 0; r < 5; ++r) {
      if ((lost >> r & 1) == 0) {
        live.push_back(Rank{r});
      }
    }
    const View view(5, live);
    const Matrix w = dense(*schedule, Step{0}, view);
    for (std::size_t i = 0; i < w.size(); ++i) {
      double row = 0;
      double column = 0;
      for (std::size_t j = 0; j < w.size(); ++j) {
        row += w[i][j];
        column += w[j][i];
      }
      EXPECT_NEAR(row, 1, 1e-14) << lost;
      EXPECT_NEAR(column, 1, 1e-14) << lost;
    }
    EXPECT_TRUE(is_connected(*schedule, view)) << lost;
  }
}

TEST(File, RowStochasticOnlyIsSeen) {
  const auto schedule =
      read(R"({"workers": 2, "steps": [{"edges": [[0,0,1],[0,1,0.5],[1,1,0.5]]}]})", 2);
  const Analysis a = analyse(*schedule, View::full(2));
  EXPECT_TRUE(a.is_row_stochastic());
  EXPECT_FALSE(a.is_column_stochastic());
  EXPECT_NEAR(a.column_error, 0.5, 1e-15);
}

TEST(File, EveryErrorNamesTheValueAndWhatIsAllowed) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {R"({"steps": []})", {"workers"}},
      {R"({"workers": 3, "steps": [{"groups": [[0,1,2]]}]})", {"3 workers", "asked for 2"}},
      {R"({"workers": 2, "steps": []})", {"'steps' must be a list"}},
      {R"({"workers": 2, "steps": [{}]})", {"step 0", "'groups' or 'edges'"}},
      {R"({"workers": 2, "steps": [{"groups": [[0]]}]})", {"rank 1 is in no group"}},
      {R"({"workers": 2, "steps": [{"groups": [[0,1],[1]]}]})", {"rank 1", "twice"}},
      {R"({"workers": 2, "steps": [{"groups": [[0,2]]}]})", {"'2'", "0 to 1"}},
      {R"({"workers": 2, "steps": [{"groups": [[0,-1]]}]})", {"'-1'", "0 to 1"}},
      {R"({"workers": 2, "steps": [{"groups": [[0,1]], "self_weight": 1.5}]})",
       {"'1.5'", "0 to 1"}},
      {R"({"workers": 2, "steps": [{"groups": [[0,1]], "self_weight": [0.5, 0.5]}]})",
       {"2 self weights for 1 groups"}},
      {R"({"workers": 2, "steps": [{"edges": [[0,0,0.5],[1,0,0.4],[1,1,1]]}]})",
       {"rank 0", "0.9", "must sum to 1"}},
      {R"({"workers": 2, "steps": [{"edges": [[0,0,1]]}]})", {"rank 1", "sum to 0"}},
      {R"({"workers": 2, "steps": [{"edges": [[0,0,0.5],[0,0,0.5],[1,1,1]]}]})", {"twice"}},
      {R"({"workers": 2, "steps": [{"edges": [[0,0]]}]})", {"[from, to, weight]"}},
      {R"({"workers": 2, "steps": [{"edges": [[0,0,-0.5]]}]})", {"'-0.5'", "0 to 1"}},
      {"{", {"is not JSON"}},
  };
  for (const auto& [text, parts] : cases) {
    const std::string error = error_of(text, 2);
    for (const std::string& part : parts) {
      EXPECT_NE(error.find(part), std::string::npos) << text << "\n  says: " << error;
    }
  }
  EXPECT_THROW(make_schedule("file:/nowhere/at/all.json", {.workers = 2}), Error);
}

}  // namespace
}  // namespace starling::topology
