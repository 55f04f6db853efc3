#include <algorithm>
#include <charconv>
#include <string_view>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

constexpr std::string_view kName = "fuzzed.txtpb";

/// Checks that `where` is the name alone, or "name:line:column" with a line that the text has.
void check_place(std::string_view where, const std::string& text) {
  require(where.starts_with(kName), "an error names the text");
  where.remove_prefix(kName.size());
  if (where.empty()) return;
  const char* end = where.data() + where.size();
  int64_t line = 0, column = 0;
  const auto [colon, line_error] = std::from_chars(where.data() + 1, end, line);
  require(line_error == std::errc() && colon != end && *colon == ':', "an error names a line");
  const auto [last, column_error] = std::from_chars(colon + 1, end, column);
  require(column_error == std::errc() && last == end, "an error names a column");
  require(line >= 1 && line <= 1 + std::ranges::count(text, '\n'), "the line is in the text");
  require(column >= 1, "columns count from 1");
}

}  // namespace

Outcome fuzz_text_proto(Input input) {
  const std::string text = text_of(input);
  std::string written;
  try {
    written = config::to_text(config::load_text(text, std::string(kName)));
  } catch (const config::SourceError& error) {
    check_place(error.where(), text);
    return Outcome::kRefused;
  }
  require(config::to_text(config::load_text(written)) == written,
          "a config written out reads back to the same text");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
