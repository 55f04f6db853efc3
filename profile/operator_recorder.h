#pragma once

#include "core/dispatch/observer.h"

namespace lockstep::profile {

/// Records each operator call of the threads that it observes as a span: name, shapes and dtypes of
/// the arguments, the work done, and the number of the graph's node that the call made. Takes no
/// lock and calls no heap. Thread-safe: threads share it and each records in its own buffer.
class OperatorRecorder final : public CallObserver {
 public:
  void enter(const Operator& op, KeySet keys, const Stack& call) override;
  void exit(const Operator& op, const Stack& call) noexcept override;
};

}  // namespace lockstep::profile
