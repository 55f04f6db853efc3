#pragma once

#include "kernels/host/host_device.h"

namespace lockstep::host {

/// Bytes that a device has under these options.
size_t budget_of(const HostOptions& options);

/// Throws ConfigError for a value out of range, naming the option.
void check(const HostOptions& options);

/// LOCKSTEP_HOST over the defaults. Throws ConfigError.
HostOptions options_from_environment();

}  // namespace lockstep::host
