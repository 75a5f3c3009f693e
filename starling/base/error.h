// Errors and checks. Three families, told apart by who has to act:
//   check    a bug of this project; the text ends with the place in the source
//   require  the caller or the input is wrong; the text is fit for a user
//   Error    the outside world (a lost worker, a time-out), thrown with its code
// All are functions, so that arguments are evaluated once and the place is the caller's.
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace starling {

enum class ErrorCode {
  Bug,          // check() failed
  Input,        // require() failed
  Mismatch,     // workers disagree on what they do together
  Lost,         // a worker died or cannot be reached
  Stalled,      // a worker did not arrive in time
  Cancelled,    // somebody asked to stop
  Diverged,     // numbers that are not finite
  Environment,  // the machine or the network failed: a full disk, no route, a program missing
};

std::string_view name_of(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// A format string checked at compile time, together with the place that wrote it.
template <typename... Args>
struct Located {
  template <typename Text>
  // NOLINTNEXTLINE(google-explicit-constructor): converts from the literal at the call
  consteval Located(const Text& t, std::source_location w = std::source_location::current())
      : text(t), where(w) {}
  fmt::format_string<Args...> text;
  std::source_location where;
};

namespace internal {
[[noreturn]] void fail_check(const std::string& text, std::source_location where);
[[noreturn]] void fail_require(const std::string& text);
}  // namespace internal

// Throws Error{Bug} unless `ok`.
template <typename... Args>
void check(bool ok, Located<std::type_identity_t<Args>...> message, Args&&... args) {
  if (ok) [[likely]] {
    return;
  }
  internal::fail_check(fmt::format(message.text, std::forward<Args>(args)...), message.where);
}

// Throws Error{Input} unless `ok`.
template <typename... Args>
void require(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  if (ok) [[likely]] {
    return;
  }
  internal::fail_require(fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace starling
