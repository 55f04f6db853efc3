#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/function_ref.h"

namespace lockstep {

/// Largest JSON text that is parsed: a document takes about ten times its text in memory.
inline constexpr size_t kMostJsonBytes = size_t{1} << 30;

/// A text that is not JSON.
class JsonSyntaxError : public DataError {
 public:
  explicit JsonSyntaxError(size_t byte);
  /// Where it stops being JSON, counted from 1.
  size_t byte() const noexcept { return byte_; }

 private:
  size_t byte_;
};

/// Parses a JSON document. All documents are parsed here or one event at a time (nlohmann's SAX
/// interface), because copying, printing and destroying a deep document would overflow the stack.
/// Throws JsonSyntaxError, and DataError for arrays and objects nested deeper than kMostJsonNesting
/// (core/base/json_text.h) and for more than `most` bytes.
nlohmann::json parse_json(std::string_view text, size_t most = kMostJsonBytes);
/// The same; members keep the order of the text.
nlohmann::ordered_json parse_ordered_json(std::string_view text, size_t most = kMostJsonBytes);

/// Is offered each string that is a member of an object: `names` are those of the members around it
/// from the outermost on, empty for what stands in an array, and its own. Returns whether it took
/// the string.
using TakeString = FunctionRef<bool(std::span<const std::string> names, std::string_view value)>;
/// Does the same and leaves out the members that `take` took: a document with very many of one kind
/// costs several times what a list of their values does.
nlohmann::ordered_json parse_ordered_json(std::string_view text, TakeString take,
                                          size_t most = kMostJsonBytes);

}  // namespace lockstep
