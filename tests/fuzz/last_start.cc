#include "train/report/last_start.h"

#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_last_start(Input input) {
  const std::string text = text_of(input);
  const std::optional<train::LastStart> last = train::parse_last_start(text);
  const std::optional<train::LastStart> cut = train::parse_last_start(text + "\n{\"start\": \"");
  require(last.has_value() == cut.has_value() && (!last || last->id == cut->id),
          "an incomplete last line changes nothing");
  return last ? Outcome::kAccepted : Outcome::kRefused;
}

}  // namespace lockstep::fuzz
