#include "core/base/error.h"
#include "tests/conformance/case_text.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_conformance_cases(Input input) {
  conformance::RecordedCases recorded;
  try {
    recorded = conformance::parse_cases(text_of(input), "fuzzed");
  } catch (const DataError& error) {
    require(std::string(error.what()).starts_with("[conformance] fuzzed is malformed: "),
            "an error names its source");
    return Outcome::kRefused;
  }
  for (const conformance::Case& one : recorded.cases) {
    require(one.outputs.size() == one.output_dtypes.size(), "every output has a dtype");
  }
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
