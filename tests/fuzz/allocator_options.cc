#include "core/base/error.h"
#include "core/memory/options.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_allocator_options(Input input) {
  AllocatorOptions options;
  try {
    options = parse_allocator_options(text_of(input), "fuzzed");
  } catch (const ConfigError& error) {
    require(std::string(error.what()).starts_with("[allocator] fuzzed: "),
            "an error names its source");
    return Outcome::kRefused;
  }
  const std::string written = to_string(options);
  require(parse_allocator_options(written, "written") == options,
          "options written out read back to the same");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
