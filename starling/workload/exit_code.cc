#include "starling/workload/exit_code.h"

#include <fmt/format.h>

#include <cstdio>

#include "starling/base/error.h"
#include "starling/workload/meeting.h"

namespace starling::workload {
namespace {

// If that cannot be written, the exit code is all there is.
void say(const char* what) { std::fputs(fmt::format("starling: {}\n", what).c_str(), stderr); }

}  // namespace

int report(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const AlreadyTold& told) {
    return told.of_input() ? 2 : 1;
  } catch (const Error& e) {
    say(e.what());
    return e.code() == ErrorCode::Input ? 2 : 1;
  } catch (const std::exception& e) {
    say(e.what());
    return 1;
  }
}

}  // namespace starling::workload
