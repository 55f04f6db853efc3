#include "core/dispatch/dispatch_trace.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/base/check.h"
#include "core/base/log_text.h"

namespace lockstep {

namespace {

thread_local constinit int t_depth = 0;

}  // namespace

bool traces_dispatch() {
  // Not environment_flag: operators are defined before main, where its exception would abort the
  // program. Another value is refused by the program (configs/program_variables.h).
  static const bool on = [] {
    const char* const value = std::getenv("LOCKSTEP_DISPATCH_TRACE");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return on;
}

TracedCall::TracedCall(const Operator& op, KeySet keys) {
  write_log(stderr, fmt::format("dispatch: {:{}}{} at {}, keys {}\n", "", 2 * t_depth, op.name(),
                                name(keys.highest()), to_string(keys)));
  ++t_depth;
}

TracedCall::~TracedCall() { --t_depth; }

}  // namespace lockstep
