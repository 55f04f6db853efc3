#pragma once

#include <memory>

#include "dist/group/process_group.h"

namespace lockstep::dist {

/// A group for tensors of the cpu over `inner`, one for tensors of `device`: what an operation
/// reads and writes is copied there, and what it wrote back, in the background. So that cases made
/// for the cpu show what a device's group does. Tensors of the device go through as they are.
std::unique_ptr<ProcessGroup> staged_group(std::unique_ptr<ProcessGroup> inner, Device device);
/// The same; `inner` must outlive it.
std::unique_ptr<ProcessGroup> staged_group(ProcessGroup& inner, Device device);

}  // namespace lockstep::dist
