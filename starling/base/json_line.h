// Where in a JSON text a value stands, for errors that name the line.
#pragma once

#include <cstddef>
#include <string_view>

namespace starling {

// The line, from 1 on, of the value that a JSON pointer ("/steps/3/forward") names; if it is not
// there, that of the innermost value on the way. Requires: `text` is JSON.
std::size_t json_line(std::string_view text, std::string_view pointer);

// Of a byte; of the end, if it lies beyond.
std::size_t line_at(std::string_view text, std::size_t byte);

// Of what a parser's message has between its last quotes, such as a number that overflows.
std::size_t line_of_quoted(std::string_view text, std::string_view message);

}  // namespace starling
