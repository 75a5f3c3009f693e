#include "starling/workload/exit_code.h"

#include <fmt/format.h>

#include <cstdio>

#include "starling/base/error.h"
#include "starling/workload/meeting.h"

namespace starling::workload {

int report(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const AlreadyTold& told) {
    return told.of_input() ? 2 : 1;
  } catch (const Error& e) {
    fmt::print(stderr, "starling: {}\n", e.what());
    return e.code() == ErrorCode::Input ? 2 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "starling: {}\n", e.what());
    return 1;
  }
}

}  // namespace starling::workload
