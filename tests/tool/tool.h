// Runs the tool as its users do, and reads what it prints.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace starling::tool {

inline std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

struct Output {
  int code = -1;
  std::string out;
  std::string err;
};

inline Output run(const std::string& arguments) {
  const std::string errors = fmt::format("{}starling_tool_test_{}", testing::TempDir(), getpid());
  const std::string command =
      fmt::format("'{}' {} 2>'{}' </dev/null", STARLING_TOOL, arguments, errors);
  Output result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "cannot run " << command;
    return result;
  }
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    result.out.append(buffer, n);
  }
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.err = text_of(errors);
  std::remove(errors.c_str());
  return result;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// One line on stderr that says all of `parts`, nothing on stdout, exit code 2.
inline void expect_refused(const std::string& arguments, const std::vector<std::string>& parts) {
  SCOPED_TRACE("starling " + arguments);
  const Output result = run(arguments);
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(result.err.starts_with("starling: ")) << result.err;
  for (const std::string& part : parts) {
    EXPECT_TRUE(has(result.err, part)) << "'" << part << "' is not in: " << result.err;
  }
}

}  // namespace starling::tool
