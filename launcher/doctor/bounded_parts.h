#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "train/report/health.h"

namespace lockstep::launcher {

/// A part of an examination that may take long or, with a broken device, for ever.
struct Part {
  std::string subject;                             ///< in the report if it gives no checks
  std::function<std::vector<train::Check>()> run;  ///< owns all that it uses
};

struct Examined {
  std::vector<train::Check> checks;
  /// A part has not returned and keeps its thread: end the process without destroying anything.
  bool hangs = false;
};

/// Runs the parts one after the other, on a thread of their own, for at most `limit`. What a part
/// throws is a failure in the report; so is one that does not return in time, and those that it
/// kept from beginning are warnings.
Examined examine(std::vector<Part> parts, std::chrono::milliseconds limit);

}  // namespace lockstep::launcher
