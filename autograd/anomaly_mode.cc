#include "autograd/anomaly_mode.h"

#include <utility>

#include "autograd/graph_run.h"
#include "core/base/check.h"

namespace lockstep {

AnomalyModeGuard::AnomalyModeGuard(bool enabled, bool check_nan) noexcept
    : mode_(detail::anomaly_mode, {enabled, enabled && check_nan}) {}

bool is_anomaly_enabled() noexcept { return detail::anomaly_mode.enabled; }
bool is_anomaly_check_nan_enabled() noexcept { return detail::anomaly_mode.check_nan; }

ForwardSite::ForwardSite()
    : stack(CallStack::capture().outside_library()), parent(GraphRun::node_of_this_thread()) {}

ForwardSite::~ForwardSite() { drop(std::move(parent)); }

std::string ForwardSite::describe() const {
  std::string text;
  for (const CallStack::Frame& frame : stack.frames()) {
    text += (text.empty() ? "  at " : "\n  at ") + to_string(frame);
  }
  if (parent) {
    text += fmt::format("\nin a backward, by {}", parent->name());
    if (parent->forward_site() != nullptr) {
      text += ", which was recorded here:\n" + parent->forward_site()->describe();
    }
  }
  return text;
}

void Node::note_site() { site_ = std::make_shared<const ForwardSite>(); }

}  // namespace lockstep
