#include "data/json_lines.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

/// The texts of the lines, and the number of those that are skipped.
int64_t read_lines(Input input, const train::JsonLinesOptions& options) {
  std::span<const std::byte> rest = std::as_bytes(input);
  const auto source = [&rest](std::span<std::byte> into) {
    const size_t count = std::min(into.size(), rest.size());
    std::copy_n(rest.begin(), count, into.begin());
    rest = rest.subspan(count);
    return count;
  };
  train::JsonLinesReader reader(source, "fuzzed", options);
  int64_t last = 0;
  for (std::string text; reader.next(text);) {
    require(!text.empty() && first_invalid_utf8(text) == text.size(), "a text is UTF-8");
    require(reader.line() > last, "lines are counted");
    last = reader.line();
  }
  return reader.skipped();
}

}  // namespace

Outcome fuzz_json_lines(Input input) {
  const int64_t skipped = read_lines(input, {.skip_damaged_lines = true});
  try {
    read_lines(input, {});
  } catch (const DataError& error) {
    require(skipped > 0, "what is refused would be skipped");
    require(std::string(error.what()).starts_with("[data] fuzzed:"), "an error names its line");
    return Outcome::kRefused;
  }
  require(skipped == 0, "what would be skipped is refused");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
