#pragma once

#include "kernels/host/host_device.h"

namespace lockstep::host {

/// Memory budget of a device in bytes.
size_t budget_of(const HostOptions& options);

/// Throws ConfigError for a value out of range, naming the option.
void check(const HostOptions& options);

/// Options from LOCKSTEP_HOST over the defaults. Throws ConfigError.
HostOptions options_from_environment();

}  // namespace lockstep::host
