#pragma once

#include <span>

#include "core/dispatch/packed_kernel.h"
#include "core/tensor/device.h"

namespace lockstep::structured {

/// Tells the stream sanitizer, if it is on, what a packed kernel on a device with streams uses.
/// Call it in the kernel's KernelScope, before the kernel.
void note_packed_launch(const Operator& op, Device device, std::span<const Out* const> results,
                        std::span<const PackedArgument> arguments);

}  // namespace lockstep::structured
