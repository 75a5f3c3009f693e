#include "starling/comm/module.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/job.h"

namespace starling::comm {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> folders() {
  std::vector<fs::path> found;
  const std::string named = process_environment()("STARLING_MODULES").value_or("");
  if (!named.empty()) {
    found.emplace_back(named);
  }
  std::error_code unreadable;
  const fs::path executable = fs::read_symlink("/proc/self/exe", unreadable);
  if (!unreadable) {
    found.push_back(executable.parent_path());
    found.push_back(executable.parent_path().parent_path() / STARLING_MODULE_DIR_RELATIVE);
  }
  found.emplace_back(STARLING_MODULE_DIR_BUILT);
  found.emplace_back(STARLING_MODULE_DIR_INSTALLED);
  return found;
}

std::string loader_error() {
  const char* text = dlerror();
  return text == nullptr ? "no reason given" : text;
}

fs::path find(const std::string& file, std::string_view needs) {
  std::string searched;
  for (const fs::path& folder : folders()) {
    std::error_code unreadable;
    if (fs::exists(folder / file, unreadable)) {
      return folder / file;
    }
    searched += (searched.empty() ? "" : ", ") + folder.string();
  }
  throw Error(
      ErrorCode::Input,
      fmt::format("{} is not installed; it needs {}. Looked for in {}; STARLING_MODULES can "
                  "name another folder",
                  file, needs, searched));
}

}  // namespace

void* load_symbol(std::string_view module, const char* symbol, std::string_view needs) {
  const fs::path path = find(fmt::format("starling_comm_{}.so", module), needs);
  // Loaded twice is loaded once; never closed, for objects of its classes may live anywhere.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  require(handle != nullptr, "{} cannot be loaded; it needs {}: {}", path.string(), needs,
          handle == nullptr ? loader_error() : "");
  void* address = dlsym(handle, symbol);
  require(address != nullptr, "{} is of another version: {}", path.string(),
          address == nullptr ? loader_error() : "");
  return address;
}

}  // namespace starling::comm
