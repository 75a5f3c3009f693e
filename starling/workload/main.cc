// starling-train: what `starling train`, `data` and `checkpoint` start, the program that holds
// torch. Exit codes: 0 done, 1 it failed, 2 the command line or the input is wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/suggestion.h"
#include "starling/workload/checkpoint_command.h"
#include "starling/workload/data_command.h"
#include "starling/workload/exit_code.h"
#include "starling/workload/images_command.h"

namespace starling::workload {
namespace {

// The command that the words lead to.
const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

std::string complaint(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& app = innermost(root);
  const std::vector<std::string> rest = root.remaining(/*recurse=*/true);
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  for (const std::string& word : rest) {
    const std::string name = word.substr(0, word.find('='));
    if (name.starts_with("--") && !names.empty()) {
      const std::vector<std::string_view> known(names.begin(), names.end());
      return fmt::format("unknown option '{}'; did you mean '{}'?", name, nearest(name, known));
    }
    return fmt::format("'{}' is not understood; see --help", word);
  }
  const std::string text = error.what();
  return text.substr(0, text.find('\n')) + "; see --help";
}

int run(int argc, char** argv) {
  CLI::App app("Starling: the workloads and their data", "starling-train");
  app.require_subcommand(1);
  add_images_command(app);
  add_data_command(app);
  add_checkpoint_command(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "starling: {}\n", complaint(app, e));
    return 2;
  } catch (...) {
    return report(std::current_exception());
  }
}

}  // namespace
}  // namespace starling::workload

int main(int argc, char** argv) { return starling::workload::run(argc, argv); }
