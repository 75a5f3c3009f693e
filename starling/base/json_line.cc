#include "starling/base/json_line.h"

#include <algorithm>
#include <charconv>

namespace starling {
namespace {

// Walks over a text that is JSON.
class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) {}

  std::size_t line() const { return line_at(text_, static_cast<std::size_t>(at_)); }

  // At a value: into it, as far as `pointer` leads.
  void follow(std::string_view pointer) {
    skip_space();
    while (!pointer.empty() && pointer.front() == '/') {
      pointer.remove_prefix(1);
      const std::string_view name = pointer.substr(0, pointer.find('/'));
      pointer.remove_prefix(name.size());
      const std::ptrdiff_t before = at_;
      if (!enter(name)) {
        at_ = before;
        return;
      }
    }
  }

 private:
  char here() const { return at_ < std::ssize(text_) ? text_[static_cast<std::size_t>(at_)] : 0; }
  void skip_space() {
    while (here() == ' ' || here() == '\n' || here() == '\t' || here() == '\r') {
      ++at_;
    }
  }
  std::string_view string() {
    const std::ptrdiff_t begin = ++at_;
    while (here() != '"' && here() != 0) {
      at_ += here() == '\\' ? 2 : 1;
    }
    const std::string_view inside =
        text_.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(at_ - begin));
    ++at_;
    return inside;
  }
  void skip_value() {
    int depth = 0;
    do {
      skip_space();
      const char c = here();
      if (c == '"') {
        string();
      } else {
        depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
        ++at_;
      }
      // A number or a word ends where something else begins.
      while (depth == 0 && at_ < std::ssize(text_) &&
             std::string_view(",]}: \n\t\r").find(here()) == std::string_view::npos) {
        ++at_;
      }
    } while (depth > 0 && at_ < std::ssize(text_));
  }
  bool enter(std::string_view name) {
    const bool is_object = here() == '{';
    if (!is_object && here() != '[') {
      return false;
    }
    std::size_t wanted = 0;
    std::from_chars(name.data(), name.data() + name.size(), wanted);
    ++at_;
    for (std::size_t i = 0;; ++i) {
      skip_space();
      if (here() == '}' || here() == ']' || here() == 0) {
        return false;
      }
      bool found = !is_object && i == wanted;
      if (is_object) {
        found = string() == name;
        skip_space();
        ++at_;  // the colon
        skip_space();
      }
      if (found) {
        return true;
      }
      skip_value();
      skip_space();
      at_ += here() == ',' ? 1 : 0;
    }
  }

  std::string_view text_;
  std::ptrdiff_t at_ = 0;
};

}  // namespace

std::size_t line_at(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  return 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
}

std::size_t json_line(std::string_view text, std::string_view pointer) {
  Walk walk(text);
  walk.follow(pointer);
  return walk.line();
}

std::size_t line_of_quoted(std::string_view text, std::string_view message) {
  const std::size_t end = message.rfind('\'');
  const std::size_t begin = end == 0 || end == std::string_view::npos
                                ? std::string_view::npos
                                : message.rfind('\'', end - 1);
  const std::size_t found =
      begin == std::string_view::npos ? 0 : text.find(message.substr(begin + 1, end - begin - 1));
  return line_at(text, found == std::string_view::npos ? 0 : found);
}

}  // namespace starling
