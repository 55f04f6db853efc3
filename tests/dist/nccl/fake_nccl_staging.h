#pragma once

#include <memory>

#include "dist/group/process_group.h"

namespace lockstep::dist {

/// A group for CPU tensors over `inner`, a group for tensors of `device`: copies inputs to the
/// device and results back in the background, so that test cases for the CPU exercise a device's
/// group. Tensors on the device are passed on unchanged.
std::unique_ptr<ProcessGroup> staged_group(std::unique_ptr<ProcessGroup> inner, Device device);
/// A staged group that does not own `inner`, which must outlive it.
std::unique_ptr<ProcessGroup> staged_group(ProcessGroup& inner, Device device);

}  // namespace lockstep::dist
