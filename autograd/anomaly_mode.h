#pragma once

#include <memory>
#include <string>

#include "autograd/node.h"
#include "core/base/call_stack.h"
#include "core/base/scoped_value.h"

namespace lockstep {

/// While alive, nodes recorded on this thread store their call stack, errors of a backward print
/// it, and (`check_nan`) a backward that produces a NaN throws AutogradError naming the node that
/// produced the first one. For debugging: it slows everything down. `enabled` false turns it off
/// for a scope.
class AnomalyModeGuard {
 public:
  [[nodiscard]] explicit AnomalyModeGuard(bool enabled = true, bool check_nan = true) noexcept;

 private:
  ScopedValue<detail::AnomalyMode> mode_;
};

bool is_anomaly_enabled() noexcept;
bool is_anomaly_check_nan_enabled() noexcept;

/// Where a node was recorded: the call stack without the library's own frames, innermost first, and
/// the node that recorded it in its backward, under create_graph.
struct ForwardSite {
  CallStack stack;
  Ref<Node> parent;

  ForwardSite();
  ~ForwardSite();
  /// Several lines, each "  at function (file+0x123)".
  std::string describe() const;
};

}  // namespace lockstep
