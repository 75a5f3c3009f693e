// The rivals as a benchmark sees them: started, and what they print is read.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace starling::rivals {
namespace {

struct Output {
  int code = -1;
  std::string text;
};

Output run(const std::string& command) {
  Output result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "cannot run " << command;
    return result;
  }
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    result.text.append(buffer, n);
  }
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

// A folder of its own for every run, gone afterwards.
class Store {
 public:
  Store() {
    std::string name = testing::TempDir() + "rivals_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Store() { std::filesystem::remove_all(path_); }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Output run_mpi(int workers, const std::string& arguments) {
  return run(
      fmt::format("mpirun --oversubscribe --allow-run-as-root --mca mpi_yield_when_idle 1 "
                  "-n {} '{}/average_mpi' {}",
                  workers, STARLING_RIVALS, arguments));
}

Output run_gloo(int workers, const std::string& arguments) {
  const Store store;
  std::string command;
  for (int rank = workers - 1; rank >= 0; --rank) {
    command += fmt::format("STARLING_RANK={} STARLING_SIZE={} '{}/average_gloo' {} --store '{}' {}",
                           rank, workers, STARLING_RIVALS, arguments, store.path(),
                           rank == 0 ? "; code=$?; wait; exit $code" : "& ");
  }
  return run(command);
}

Output run_memory(int workers, const std::string& arguments) {
  return run(
      fmt::format("'{}/average_memory' {} --workers {}", STARLING_RIVALS, arguments, workers));
}

void expect_line(const std::string& text, std::size_t bytes, std::size_t repetitions) {
  SCOPED_TRACE(text);
  const auto line = nlohmann::json::parse(text);
  EXPECT_EQ(line.at("bytes"), bytes);
  const auto seconds = line.at("seconds").get<std::vector<double>>();
  EXPECT_EQ(seconds.size(), repetitions);
  EXPECT_TRUE(std::all_of(seconds.begin(), seconds.end(), [](double s) { return s > 0; }));
  EXPECT_GE(line.at("cpu_seconds"), 0.0);
  EXPECT_GT(line.at("elapsed_seconds"), 0.0);
}

// Sizes that fill no line and no chunk evenly, and one of a single float.
void expect_measures(Output (*start)(int, const std::string&)) {
  for (const int workers : {1, 2, 3}) {
    SCOPED_TRACE(workers);
    const Output result =
        start(workers, "--bytes 4,1000,300004 --repetitions 3,2,4 --warmup 1 --private");
    EXPECT_EQ(result.code, 0);
    std::istringstream lines(result.text);
    std::string line;
    for (const auto& [bytes, repetitions] : {std::pair{4, 3}, {1000, 2}, {300004, 4}}) {
      ASSERT_TRUE(std::getline(lines, line));
      expect_line(line, bytes, repetitions);
    }
    EXPECT_FALSE(std::getline(lines, line)) << line;
  }
}

TEST(Rivals, mpi) { expect_measures(run_mpi); }
TEST(Rivals, gloo) { expect_measures(run_gloo); }
TEST(Rivals, memory) { expect_measures(run_memory); }

// One line that says `part`, and nothing else; exit code 2.
void expect_refused(const std::string& program, const std::string& arguments,
                    const std::string& part) {
  SCOPED_TRACE(program + " " + arguments);
  const Output result = run(fmt::format("'{}/{}' {} 2>&1", STARLING_RIVALS, program, arguments));
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'), 1) << result.text;
  EXPECT_TRUE(result.text.starts_with(program + ": ")) << result.text;
  EXPECT_NE(result.text.find(part), std::string::npos) << result.text;
}

TEST(Rivals, WrongArgumentsAreRefused) {
  for (const char* program : {"average_mpi", "average_gloo", "average_memory"}) {
    expect_refused(program, "", "--bytes and --repetitions are needed");
    expect_refused(program, "--bytes 8,16 --repetitions 1", "2 sizes, but 1");
    expect_refused(program, "--bytes 7 --repetitions 1", "no whole number of floats");
    expect_refused(program, "--bytes 8, --repetitions 1,1", "'' is not a number");
    expect_refused(program, "--bytes 8 --repetitions 0", "'0' is not a number from 1");
    expect_refused(program, "--bytes 8 --repetitions 1 --warmup x", "'x' is not a number");
    expect_refused(program, "--bytes 8 --repetitions", "--repetitions needs a value");
    expect_refused(program, "--byte 8", "unknown option '--byte'");
  }
  const std::string good = "--bytes 8 --repetitions 1 ";
  expect_refused("average_mpi", "--bytes 100000000000 --repetitions 1", "more than one MPI call");
  expect_refused("average_memory", good, "--workers is needed");
  expect_refused("average_memory", good + "--workers 0", "'0' is not a number from 1");
  expect_refused("average_gloo", good, "--store is needed");
  expect_refused("average_gloo", good + "--store /", "STARLING_SIZE is not set");
}

}  // namespace
}  // namespace starling::rivals
