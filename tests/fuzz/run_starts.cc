#include "tests/fuzz/targets.h"
#include "train/report/last_start.h"

namespace lockstep::fuzz {

Outcome fuzz_run_starts(Input input) {
  const auto last = train::parse_last_start(text_of(input));
  if (!last) return Outcome::kRefused;
  require(last->ranks >= 1, "a start has ranks");
  require(last->told_ns >= 0, "a time lies after the epoch");
  require(last->end.empty() || last->end == train::kFinished || last->end == train::kStopped,
          "an end is one of two, or none");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
