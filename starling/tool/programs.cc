#include "starling/tool/programs.h"

#include <fmt/format.h>

#include <filesystem>

#include "starling/base/error.h"

namespace starling::tool {

namespace fs = std::filesystem;

std::string find_program(const std::string& folder, const std::string& name) {
  const fs::path own = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& place : {own / "bench" / folder, own / ".." / "libexec" / "starling"}) {
    const fs::path program = place / name;
    if (fs::exists(program)) {
      return program.lexically_normal().string();
    }
  }
  throw Error(ErrorCode::Input,
              fmt::format("the program {} is not there; it is built with STARLING_BENCH=ON", name));
}

std::string find_trainer() {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "starling-train";
  require(fs::exists(program), "the program {} is not there; it is built with libtorch",
          program.string());
  return program.string();
}

void run_program(launch::Options options, const std::string& what,
                 const std::function<void(const nlohmann::json&)>& on_line) {
  std::string other;
  options.on_line = [&](std::size_t, launch::Stream, std::string_view line) {
    if (line.starts_with('{')) {
      on_line(nlohmann::json::parse(line));
    } else {
      other += fmt::format("\n  {}", line);
    }
  };
  const launch::Result result = launch::launch(options);
  if (result.interrupted_by) {
    throw Error(ErrorCode::Cancelled,
                fmt::format("interrupted by {}", launch::name_of_signal(*result.interrupted_by)));
  }
  if (!result.lost.empty()) {
    throw Error(ErrorCode::Lost,
                fmt::format("{}: worker {} {}{}", what, result.lost.front(),
                            launch::describe(result.workers[result.lost.front()]), other));
  }
}

}  // namespace starling::tool
