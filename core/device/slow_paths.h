#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/function_ref.h"

namespace lockstep {

/// A way of computing something that is slower than the device could do, taken because a library,
/// an engine of it or a kernel is missing. Its results are as good.
struct SlowPath {
  std::string what;   ///< "products of bfloat16 with a bias and a gelu"
  std::string why;    ///< of the first call, without a full stop
  int64_t calls = 0;  ///< in this process
};

/// Counts a call that went a slow way. The first call of each `what` writes a line to standard
/// error, with what `why` returns. Thread-safe.
void count_slow_path(std::string_view what, FunctionRef<std::string()> why);

/// The slow ways that calls went so far, in the order of their first calls. Thread-safe.
std::vector<SlowPath> slow_paths();

}  // namespace lockstep
