// The programs that the tool starts and reads. Those under bench/ are beside it in the build
// folder, or where it was installed, and print lines of JSON.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "starling/launch/launch.h"

namespace starling::tool {

// Of bench/`folder`. Throws Error{Input} if it is not there.
std::string find_program(const std::string& folder, const std::string& name);

// starling-train, beside this program in the build folder and where it was installed. Throws
// Error{Input} if it is not there.
std::string find_trainer();

// Runs it to its end, and hands over every line of JSON. Throws Error{Lost} with all else it wrote
// if it fails (`what` says which it was), Error{Cancelled} if it was interrupted.
void run_program(launch::Options options, const std::string& what,
                 const std::function<void(const nlohmann::json&)>& on_line);

}  // namespace starling::tool
