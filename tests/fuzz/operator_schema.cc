#include "core/base/error.h"
#include "core/dispatch/schema.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_operator_schema(Input input) {
  Schema schema;
  try {
    schema = parse_schema(text_of(input));
  } catch (const DispatchError& error) {
    require(std::string(error.what()).starts_with("[schema] "), "an error names its source");
    return Outcome::kRefused;
  }
  const std::string written = schema.to_string();
  require(parse_schema(written).to_string() == written, "a schema written out reads back the same");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
