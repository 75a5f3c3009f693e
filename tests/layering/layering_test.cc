// Rooms include only along the arrows, foreign libraries come in by one door each, and the map
// lists every room. The rules are data; the checker is itself tested on sources that break them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::vector<std::string>> kArrows = {
    {"base", {}},           {"kernels", {"base"}},
    {"topology", {"base"}}, {"comm", {"topology", "kernels"}},
    {"sim", {"comm"}},      {"model", {"topology"}},
    {"train", {"comm"}},    {"workload", {"train", "model"}},
    {"launch", {"base"}},   {"tool", {"model", "sim", "comm", "launch"}}};

// What an include begins with, and the paths (as regular expressions) that may write it.
const std::vector<std::pair<std::string, std::string>> kDoors = {
    {"ucp/", "comm/ucx_.*"},
    {"uct/", "comm/ucx_.*"},
    {"ucs/", "comm/ucx_.*"},
    {"mpi.h", "comm/mpi_.*"},
    {"pmix", "comm/pmix_.*"},
    {"torch/", "(train|workload)/.*"},
    {"ATen/", "(train|workload)/.*"},
    {"hwy/", "kernels/.*"},
    {"png.h", "workload/cifar10_png\\.cc"},
    {"zlib.h", "workload/idx\\.cc"},
    {"openssl/", "workload/digest\\.cc"},
    {"CLI/", "(tool/.*|workload/.*_command\\.(h|cc)|workload/main\\.cc)"}};

// Everything reachable along the arrows, the room itself included.
std::set<std::string> reach(const std::string& room) {
  std::set<std::string> rooms = {room};
  for (const std::string& next : kArrows.at(room)) {
    rooms.merge(reach(next));
  }
  return rooms;
}

// What is wrong with a file of that path (below starling/), or nothing.
std::optional<std::string> fault(const std::string& path, std::istream& source) {
  const std::string room = path.substr(0, path.find('/'));
  if (!kArrows.contains(room)) {
    return path + " is in no known room";
  }
  const std::set<std::string> allowed = reach(room);
  const std::regex include(R"re(^\s*#\s*include\s*[<"]([^">]+)[">])re");
  std::string line;
  while (std::getline(source, line)) {
    std::smatch match;
    if (!std::regex_search(line, match, include)) {
      continue;
    }
    const std::string target = match[1];
    if (target.starts_with("starling/")) {
      const std::string other = target.substr(9, target.find('/', 9) - 9);
      if (!allowed.contains(other)) {
        return path + " includes " + target + " against the arrows";
      }
    } else if (target.starts_with("tests/") || target.starts_with("bench/")) {
      return path + " includes " + target;
    }
    for (const auto& [prefix, door] : kDoors) {
      if (target.starts_with(prefix) && !std::regex_match(path, std::regex(door))) {
        return path + " includes <" + target + ">, whose only door is " + door;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> fault_of(const std::string& path, const std::string& text) {
  std::istringstream source(text);
  return fault(path, source);
}

TEST(Layering, NoIncludeGoesAgainstTheArrows) {
  const fs::path root = fs::path(STARLING_SOURCE) / "starling";
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".h" || entry.path().extension() == ".cc") {
      std::ifstream source(entry.path());
      const auto wrong = fault(fs::relative(entry.path(), root).generic_string(), source);
      EXPECT_FALSE(wrong) << wrong.value_or("");
      ++files;
    }
  }
  EXPECT_GT(files, 40);
}

TEST(Layering, TheCheckerFindsWhatIsWrong) {
  EXPECT_TRUE(fault_of("base/x.h", "#include \"starling/comm/engine.h\"\n"));
  EXPECT_TRUE(fault_of("comm/x.h", "#include \"starling/sim/network.h\"\n"));
  EXPECT_TRUE(fault_of("topology/x.cc", "  #  include <starling/kernels/sum.h>\n"));
  EXPECT_TRUE(fault_of("comm/engine.cc", "#include <mpi.h>\n"));
  EXPECT_TRUE(fault_of("sim/x.cc", "#include <torch/torch.h>\n"));
  EXPECT_TRUE(fault_of("comm/x.cc", "#include <hwy/highway.h>\n"));
  EXPECT_TRUE(fault_of("comm/x.cc", "#include \"tests/comm/trial.h\"\n"));
  EXPECT_TRUE(fault_of("launch/x.cc", "#include \"starling/comm/job.h\"\n"));
  EXPECT_TRUE(fault_of("newroom/x.cc", ""));
  EXPECT_FALSE(
      fault_of("sim/x.cc", "#include \"starling/topology/neighbours.h\"\n#include <map>\n"));
  EXPECT_FALSE(fault_of("comm/mpi_endpoint.cc", "#include <mpi.h>\n"));
}

TEST(Layering, TheMapListsEveryRoom) {
  std::ifstream file(fs::path(STARLING_SOURCE) / "docs" / "map.md");
  std::stringstream map;
  map << file.rdbuf();
  int rooms = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(STARLING_SOURCE) / "starling")) {
    const std::string room = entry.path().filename().string();
    EXPECT_NE(map.str().find("`" + room + "/`"), std::string::npos) << room << " is not on the map";
    EXPECT_TRUE(kArrows.contains(room)) << room << " has no arrows";
    ++rooms;
  }
  EXPECT_GE(rooms, 6);
}

}  // namespace
