#include "core/device/active_capture.h"

#include "core/base/check.h"
#include "core/base/current_scope.h"

namespace lockstep {

void require_no_capture(std::string_view op, std::string_view why) {
  const ActiveCapture* const capture = active_capture();
  LS_CHECK(capture == nullptr, DeviceError,
           "[{}] cannot be part of a graph that is captured on {}: {}. Expected work that is only "
           "queued. Do this before the capture, or after replay().",
           op, to_string(capture->stream), why);
}

void require_no_capture_here(std::string_view function, std::string_view why) {
  if (active_capture() == nullptr) [[likely]]
    return;
  const OperatorName* const op = current_operator();
  require_no_capture(op != nullptr ? op->name() : function, why);
}

}  // namespace lockstep
