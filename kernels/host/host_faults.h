#pragma once

#include "kernels/host/host_device.h"

namespace lockstep::host {

/// Counts a call of this kind; true when a HostFaultGuard wants it to fail. Thread-safe.
bool should_fail(HostFault kind) noexcept;

}  // namespace lockstep::host
