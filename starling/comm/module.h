// Parts that need a foreign library are modules, loaded when they are asked for, so that the rest
// starts without that library.
//
// The module NAME is the file starling_comm_NAME.so, looked for in the folder that the environment
// variable STARLING_MODULES names, beside the executable, in the library folder of the executable's
// installation, and where it was built or installed. Modules hold copies of this room's code, which
// has no globals; Error crosses the boundary as itself.
#pragma once

#include <string_view>

namespace starling::comm {

// The address of a symbol of a module, which stays loaded for the rest of the process. `needs` says
// what the user has to install for the module, such as "PMIx (libpmix2)". Throws Error{Input} with
// that and the loader's own words if the module is not there or cannot be loaded. From any thread.
void* load_symbol(std::string_view module, const char* symbol, std::string_view needs);

}  // namespace starling::comm
