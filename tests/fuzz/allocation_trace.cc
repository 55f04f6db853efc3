#include "core/memory/allocation_trace.h"

#include "core/base/error.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_allocation_trace(Input input) {
  AllocationTrace trace;
  try {
    trace = parse_allocation_trace(text_of(input), "fuzzed");
  } catch (const DataError&) {
    return Outcome::kRefused;
  }
  require(trace.peak_live_bytes() >= 0, "a sum of sizes fits 64 bits");
  require(parse_allocation_trace(to_string(trace, "fuzzed"), "written") == trace,
          "a trace written out reads back the same");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
