#include "starling/base/error.h"

namespace starling {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::Bug:
      return "bug";
    case ErrorCode::Input:
      return "input";
    case ErrorCode::Mismatch:
      return "mismatch";
    case ErrorCode::Lost:
      return "lost";
    case ErrorCode::Stalled:
      return "stalled";
    case ErrorCode::Cancelled:
      return "cancelled";
    case ErrorCode::Diverged:
      return "diverged";
    case ErrorCode::Environment:
      return "environment";
  }
  return "unknown";
}

namespace internal {

void fail_check(const std::string& text, std::source_location where) {
  throw Error(ErrorCode::Bug, fmt::format("{} (a bug in Starling, at {}:{} in {})", text,
                                          where.file_name(), where.line(), where.function_name()));
}

void fail_require(const std::string& text) { throw Error(ErrorCode::Input, text); }

}  // namespace internal
}  // namespace starling
