#pragma once

#include "core/dispatch/operator.h"

namespace lockstep {

/// Whether LOCKSTEP_DISPATCH_TRACE=1 was set when the first operator was defined.
bool traces_dispatch();

/// Writes one line to standard error for each table entry that a call runs: the operator, the key
/// that handles it and the keys left, indented by the depth of nested calls in this thread. Used by
/// the dispatcher's templates.
class TracedCall {
 public:
  TracedCall(const Operator& op, KeySet keys);
  ~TracedCall();
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;
};

}  // namespace lockstep
