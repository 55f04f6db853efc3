#pragma once

#include <memory>
#include <string>

#include "core/base/scoped_value.h"
#include "autograd/node.h"
#include "core/base/call_stack.h"

namespace lockstep {

/// While alive, on this thread: nodes note where in the program they were recorded, errors of a
/// backward say it, and (`check_nan`) a backward that makes a NaN is an AutogradError naming the
/// node that made the first one. For finding faults: it makes everything slower. `enabled` false
/// ends it for a scope.
class AnomalyModeGuard {
 public:
  explicit AnomalyModeGuard(bool enabled = true, bool check_nan = true) noexcept;

 private:
  ScopedValue<detail::AnomalyMode> mode_;
};

bool is_anomaly_enabled() noexcept;
bool is_anomaly_check_nan_enabled() noexcept;

/// Where a node was recorded: calls of the program, the library's own left out, innermost first;
/// and which node's backward recorded it, under create_graph.
struct ForwardSite {
  CallStack stack;
  Ref<Node> parent;

  ForwardSite();
  ~ForwardSite();
  /// Several lines, each "  at function (file+0x123)".
  std::string describe() const;
};

}  // namespace lockstep
