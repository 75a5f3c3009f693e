// The words of a command line that is put together here and read by another program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace starling::tool {

using Words = std::vector<std::string>;

// At spaces; 'single' and "double" quotes keep what is between them in one word. Throws
// Error{Input} if a quote is not closed.
Words split_words(std::string_view text);
// In one line, with quotes where a shell would need them.
std::string join_words(const Words& words);

// The value of `option`, as "--option value" or "--option=value", taken out of the words.
std::optional<std::string> take(Words& words, const std::string& option);

// `common`, but for the options that are in `own` too, then `own`. -n and --workers are the same,
// and so are --epochs and --steps: both say how long.
Words with_own(Words common, const Words& own);

// The first option that differs: "'--lr 0.1' then, nothing now". Empty: they mean the same, which
// is the same options with the same values in any order, but for those of one that is given twice.
// "--x=v" is "--x v", and -n is --workers.
std::string difference_of(const Words& now, const Words& then);

}  // namespace starling::tool
