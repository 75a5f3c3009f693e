// The command line: parse, hand over, print errors in one line.
// Exit codes: 0 done, 1 it failed, 2 the command line or the input is wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/tool/simulate_command.h"
#include "starling/tool/suggest.h"

namespace starling::tool {
namespace {

// One row per subcommand; each adds itself with its options.
constexpr void (*kCommands[])(CLI::App&) = {add_simulate_command};

// The innermost subcommand that was named.
const CLI::App* innermost(const CLI::App* app) {
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
  }
  return app;
}

// What CLI11 calls an extra: a misspelt option or subcommand.
std::string explain_extra(const CLI::App& root) {
  const CLI::App* app = innermost(&root);
  std::string word;
  for (const CLI::App* a = &root;; a = a->get_subcommands().front()) {
    if (const std::vector<std::string> extras = a->remaining(); !extras.empty()) {
      word = extras.front();
      app = a;
    }
    if (a->get_subcommands().empty()) {
      break;
    }
  }
  app = word.starts_with("-") ? innermost(app) : app;
  std::vector<std::string> candidates;
  if (word.starts_with("-")) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        candidates.push_back("--" + name);
      }
    }
    word = word.substr(0, word.find('='));
  } else {
    for (const CLI::App* sub : app->get_subcommands(std::function<bool(const CLI::App*)>())) {
      candidates.push_back(sub->get_name());
    }
  }
  const std::string meant = nearest(word, candidates);
  const char* what = word.starts_with("-") ? "option" : "argument";
  return fmt::format("unknown {} '{}'{}", what, word,
                     meant.empty() ? fmt::format("; see {} --help", app->get_display_name())
                                   : fmt::format("; did you mean '{}'?", meant));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

int run(int argc, char** argv) {
  CLI::App app("Starling: decentralized data-parallel training of neural networks", "starling");
  app.set_version_flag("--version", "starling " STARLING_VERSION);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 failed, 2 wrong command line or input.\n"
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
  } catch (const CLI::ExtrasError&) {
    fmt::print(stderr, "starling: {}\n", explain_extra(app));
    return 2;
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "starling: {}; see --help\n", first_line(e.what()));
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
