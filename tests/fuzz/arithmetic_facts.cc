#include "core/base/error.h"
#include "core/device/facts_text.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_arithmetic_facts(Input input) {
  std::vector<ArithmeticFact> facts;
  try {
    facts = parse_facts(text_of(input));
  } catch (const DataError&) {
    return Outcome::kRefused;
  }
  require(parse_facts(format_facts(facts)) == facts, "facts written anew read back the same");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
