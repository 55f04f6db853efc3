#pragma once

#include "kernels/host/host_device.h"

namespace lockstep::host {

/// Counts an operation of this kind; returns true if a HostFaultGuard makes it fail. Thread-safe.
bool should_fail(HostFault kind) noexcept;

}  // namespace lockstep::host
