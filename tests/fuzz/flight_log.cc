#include "dist/flight/flight_log.h"

#include <string>

#include "core/base/error.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_flight_log(Input input) {
  constexpr int kSmallJob = 1000;  // listing missing ranks is fast up to here
  dist::FlightLog log;
  try {
    log = dist::parse_flight_log(text_of(input), "fuzzed");
  } catch (const DataError& error) {
    require(std::string(error.what()).starts_with("[flight log] fuzzed: "),
            "an error names its source");
    return Outcome::kRefused;
  }
  const std::string written = dist::format_flight_log(log);
  require(dist::format_flight_log(dist::parse_flight_log(written, "written")) == written,
          "a log written out reads back to the same");
  if (log.world_size <= kSmallJob) {
    require(dist::explain({log}).starts_with("Logs of 1 of "), "every log can be explained");
  }
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
