#pragma once

#include <string_view>

namespace lockstep {

/// Deepest nesting that readers of JSON accept. The files that the project reads nest below 10.
inline constexpr int kMostJsonNesting = 64;

/// Throws DataError with line and column if arrays and objects of the JSON text nest deeper than
/// `most`. Every reader that builds a document calls this first: copying, comparing, printing and
/// destroying a document recurse, so that a deep one from outside would overflow the stack. Takes
/// linear time and no memory. Checks nothing else; text that is not JSON may pass.
void check_json_nesting(std::string_view text, int most = kMostJsonNesting);

}  // namespace lockstep
