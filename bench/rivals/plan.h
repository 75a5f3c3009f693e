// What a rival is asked to measure: the command line that all of them share.
//
//   --bytes 1024,1048576 --repetitions 20,5 --warmup 2 [--private] [--OPTION VALUE]…
//
// --private: in ordinary memory. A rival's buffers always are; Starling's are not without it.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace starling::rivals {

struct Size {
  std::size_t bytes = 0;  // a positive multiple of a float's
  int repetitions = 0;
};

struct Plan {
  std::vector<Size> sizes;
  int warmup = 0;
  bool is_private = false;
  std::map<std::string, std::string, std::less<>> options;  // those of one rival, by "--name"
};

// Requires (throws Error{Input}): --bytes and --repetitions, lists of the same length; no option
// but the shared ones and `own`, the names of the options of this rival.
Plan parse(int argc, const char* const* argv, std::initializer_list<std::string_view> own = {});

// A number from `lowest` to 10^12; `what` names it in the complaint.
long parse_number(std::string_view what, std::string_view text, long lowest);

// Runs `body` and returns its exit code; an Error{Input} is one line on stderr and 2, any other
// exception one line and 1.
int exit_code(std::string_view program, const std::function<int()>& body);

}  // namespace starling::rivals
