// The command line: parse, hand over, print errors in one line.
// Exit codes: 0 done, 1 it failed, 2 the command line or the input is wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/error.h"
#include "starling/tool/commands.h"
#include "starling/tool/suggest.h"

namespace starling::tool {
namespace {

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

bool takes_value(const CLI::App& app, const std::string& word) {
  const CLI::Option* option = app.get_option_no_throw(word);
  return option != nullptr && option->get_items_expected_max() > 0;
}

// How many of the words are ours. A command that starts another takes what follows its own options,
// with or without "--" between.
std::size_t count_own(const CLI::App& root, std::span<char*> words) {
  const CLI::App* app = &root;
  std::string last;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    const bool is_own = word.starts_with('-') || takes_value(*app, last);
    if (app->get_prefix_command() && (word == "--" || !is_own)) {
      return i;
    }
    const std::vector<std::string> known = command_names(*app);
    if (std::find(known.begin(), known.end(), word) != known.end()) {
      app = app->get_subcommand(word);
    }
    last = word;
  }
  return words.size();
}

// Which word of the command line is neither a command nor an option where it stands, or nothing.
std::string find_unknown(CLI::App& root, std::span<char*> words) {
  CLI::App* app = &root;
  std::string last;
  for (const std::string word : words.first(count_own(root, words))) {
    const bool is_value = takes_value(*app, std::exchange(last, word));
    if (word.starts_with("--")) {
      const std::string name = word.substr(0, word.find('='));
      const std::vector<std::string> known = option_names(*app);
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        return complain("option", name, *app, known);
      }
      continue;
    }
    if (word.starts_with('-') && !is_value) {
      if (app->get_option_no_throw(word.substr(0, 2)) == nullptr) {
        return complain("option", word, *app, option_names(*app));
      }
      continue;
    }
    const std::vector<std::string> known = command_names(*app);
    if (std::find(known.begin(), known.end(), word) != known.end()) {
      app = app->get_subcommand(word);
    } else if (!known.empty() && !is_value) {
      return complain("command", word, *app, known);
    }
  }
  return "";
}

// Takes out the "--" before the words that are not ours: CLI11 would give those to the command
// above. Returns how many words are left.
int remove_mark(const CLI::App& root, int argc, char** argv) {
  char** const mark = argv + 1 + count_own(root, std::span(argv, argc).subspan(1));
  if (mark == argv + argc || std::string_view(*mark) != "--") {
    return argc;
  }
  std::rotate(mark, mark + 1, argv + argc);
  return argc - 1;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// If even that cannot be written, the exit code is all there is.
void say(const std::string& what) {
  std::fputs(fmt::format("starling: {}\n", what).c_str(), stderr);
}

int run(int argc, char** argv) {
  CLI::App app("Starling: decentralized data-parallel training of neural networks", "starling");
  app.set_version_flag("--version", "starling " STARLING_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 failed, 2 wrong command line or input.\n"
      "starling COMMAND --help tells more.");
  for (const AddCommand add : commands()) {
    add(app);
  }
  argc = remove_mark(app, argc, argv);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::RuntimeError& e) {  // a command that ended with a code of its own
    return e.get_exit_code();
  } catch (const CLI::ParseError& e) {
    const std::string unknown = find_unknown(app, std::span(argv, argc).subspan(1));
    say(unknown.empty() ? first_line(e.what()) + "; see --help" : unknown);
    return 2;
  } catch (const Error& e) {
    say(e.what());
    return e.code() == ErrorCode::Input ? 2 : 1;
  } catch (const std::exception& e) {
    say(e.what());
    return 1;
  }
}

}  // namespace
}  // namespace starling::tool

int main(int argc, char** argv) { return starling::tool::run(argc, argv); }
