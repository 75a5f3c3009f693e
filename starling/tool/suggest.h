// "Did you mean …?", for words that may also be meant for nothing we know.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace starling::tool {

// The candidate with the fewest edits to `word`; empty if none is near enough to be meant.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// "unknown kind 'gruop'; did you mean 'group'? (allreduce, ring, group)"
std::string unknown(std::string_view what, std::string_view word,
                    std::span<const std::string> candidates);

}  // namespace starling::tool
