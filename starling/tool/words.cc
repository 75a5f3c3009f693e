#include "starling/tool/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "starling/base/error.h"

namespace starling::tool {
namespace {

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' &&
         std::string_view("0123456789.").find(word[1]) == std::string_view::npos;
}

// "--lr" of "--lr=0.1", "-n" of "-n4".
std::string name_of_option(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

Words names_like(const std::string& name) {
  for (const Words& same : {Words{"-n", "--workers"}, Words{"--epochs", "--steps"}}) {
    if (std::find(same.begin(), same.end(), name) != same.end()) {
      return same;
    }
  }
  return {name};
}

// With its value, if it has one.
void remove_option(Words& words, const std::string& name) {
  for (std::size_t i = 0; i < words.size();) {
    if (!is_option(words[i]) || name_of_option(words[i]) != name) {
      ++i;
      continue;
    }
    const bool has_value = words[i] == name && i + 1 < words.size() && !is_option(words[i + 1]);
    const auto at = words.begin() + static_cast<std::ptrdiff_t>(i);
    words.erase(at, at + (has_value ? 2 : 1));
  }
}

// With all words up to the next; without a name: those before the first.
struct Option {
  std::string name{};
  Words values{};
  bool operator==(const Option&) const = default;
};

// By name; those of the same name in their order.
std::vector<Option> options_of(const Words& words) {
  std::vector<Option> options;
  for (const std::string& word : words) {
    if (!is_option(word)) {
      if (options.empty()) {
        options.emplace_back();
      }
      options.back().values.push_back(word);
      continue;
    }
    const std::string name = name_of_option(word);
    Option& option = options.emplace_back();
    option.name = name == "-n" ? "--workers" : name;
    if (word != name) {
      option.values.push_back(word.substr(name.size() + (word.starts_with("--") ? 1 : 0)));
    }
  }
  std::stable_sort(options.begin(), options.end(),
                   [](const Option& a, const Option& b) { return a.name < b.name; });
  return options;
}

std::string text_of(const Option& option) {
  Words words = option.values;
  if (!option.name.empty()) {
    words.insert(words.begin(), option.name);
  }
  return fmt::format("'{}'", join_words(words));
}

bool is_plain(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_=+.,:/%@").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

}  // namespace

Words split_words(std::string_view text) {
  Words words;
  bool in_word = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? '\0' : c;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      in_word = false;
      continue;
    } else {
      if (!in_word) {
        words.emplace_back();
      }
      words.back().push_back(c);
      in_word = true;
      continue;
    }
    if (!in_word) {  // a quote begins a word, be it empty
      words.emplace_back();
      in_word = true;
    }
  }
  require(quote == 0, "a quote is not closed in:{}{}", text.starts_with(' ') ? "" : " ", text);
  return words;
}

std::string join_words(const Words& words) {
  std::string line;
  for (const std::string& word : words) {
    line += line.empty() ? "" : " ";
    line += is_plain(word) ? word : "'" + word + "'";
  }
  return line;
}

std::optional<std::string> take(Words& words, const std::string& option) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(option + "=")) {
      std::string value = words[i].substr(option.size() + 1);
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
      return value;
    }
    if (words[i] == option && i + 1 < words.size()) {
      std::string value = words[i + 1];
      const auto at = words.begin() + static_cast<std::ptrdiff_t>(i);
      words.erase(at, at + 2);
      return value;
    }
  }
  return std::nullopt;
}

Words with_own(Words common, const Words& own) {
  for (const std::string& word : own) {
    if (is_option(word)) {
      for (const std::string& name : names_like(name_of_option(word))) {
        remove_option(common, name);
      }
    }
  }
  common.insert(common.end(), own.begin(), own.end());
  return common;
}

std::string difference_of(const Words& now, const Words& then) {
  const std::vector<Option> ours = options_of(now);
  const std::vector<Option> theirs = options_of(then);
  const auto [a, b] = std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
  if (a == ours.end() && b == theirs.end()) {
    return "";
  }
  // Of two names the one that comes first is missing on the other side.
  const bool is_now = a != ours.end() && (b == theirs.end() || a->name <= b->name);
  const bool was_then = b != theirs.end() && (a == ours.end() || b->name <= a->name);
  return fmt::format("{} then, {} now", was_then ? text_of(*b) : "nothing",
                     is_now ? text_of(*a) : "nothing");
}

}  // namespace starling::tool
