#include "core/dispatch/dispatch_trace.h"

#include <cstdio>

#include "core/base/check.h"
#include "core/base/environment_flag.h"
#include "core/base/log_text.h"

namespace lockstep {

namespace {

thread_local constinit int t_depth = 0;

}  // namespace

bool traces_dispatch() {
  static const bool on = environment_flag("LOCKSTEP_DISPATCH_TRACE");
  return on;
}

TracedCall::TracedCall(const Operator& op, KeySet keys) {
  write_log(stderr, fmt::format("dispatch: {:{}}{} at {}, keys {}\n", "", 2 * t_depth, op.name(),
                                name(keys.highest()), to_string(keys)));
  ++t_depth;
}

TracedCall::~TracedCall() { --t_depth; }

}  // namespace lockstep
