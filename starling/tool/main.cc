// The command line: parse, hand over, print errors in one line.
// Exit codes: 0 done, 1 it failed, 2 the command line or the input is wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/tool/simulate_command.h"
#include "starling/tool/suggest.h"
#include "starling/tool/topology_command.h"

namespace starling::tool {
namespace {

// One row per subcommand; each adds itself with its options.
constexpr void (*kCommands[])(CLI::App&) = {add_simulate_command, add_topology_command};

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(std::function<bool(const CLI::App*)>())) {
    names.push_back(sub->get_name());
  }
  return names;
}

std::string complain(std::string_view what, const std::string& word, const CLI::App& app,
                     const std::vector<std::string>& candidates) {
  const std::string meant = nearest(word, candidates);
  return fmt::format("unknown {} '{}'; {}", what, word,
                     meant.empty() ? fmt::format("see {} --help", app.get_name())
                                   : fmt::format("did you mean '{}'?", meant));
}

// Which word of the command line is neither a command nor an option where it stands, or nothing.
std::string find_unknown(CLI::App& root, std::span<char*> words) {
  CLI::App* app = &root;
  for (const std::string word : words) {
    if (word.starts_with("--")) {
      const std::string name = word.substr(0, word.find('='));
      const std::vector<std::string> known = option_names(*app);
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        return complain("option", name, *app, known);
      }
      continue;
    }
    const std::vector<std::string> known = command_names(*app);
    if (std::find(known.begin(), known.end(), word) != known.end()) {
      app = app->get_subcommand(word);
    } else if (!known.empty()) {
      return complain("command", word, *app, known);
    }
  }
  return "";
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

int run(int argc, char** argv) {
  CLI::App app("Starling: decentralized data-parallel training of neural networks", "starling");
  app.set_version_flag("--version", "starling " STARLING_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 failed, 2 wrong command line or input.\n"
      "starling COMMAND --help tells more.");
  for (const auto add : kCommands) {
    add(app);
  }
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    const std::string unknown = find_unknown(app, std::span(argv, argc).subspan(1));
    fmt::print(stderr, "starling: {}\n",
               unknown.empty() ? first_line(e.what()) + "; see --help" : unknown);
    return 2;
  } catch (const Error& e) {
    fmt::print(stderr, "starling: {}\n", e.what());
    return e.code() == ErrorCode::Input ? 2 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "starling: {}\n", e.what());
    return 1;
  }
}

}  // namespace
}  // namespace starling::tool

int main(int argc, char** argv) { return starling::tool::run(argc, argv); }
