#pragma once

#include "dist/collectives/host_layout.h"
#include "dist/collectives/operation.h"

namespace lockstep::dist {

/// Whether a plan of all_reduce, reduce_scatter or all_gather in which bytes go from host to host
/// once loads the busiest link of a host less than one in which all ranks exchange them. Both have
/// the same bits. They are compared by the bytes that a host sends and receives, so the answer is
/// the same on all ranks.
bool saves_between_hosts(const Operation& operation, const HostLayout& layout);

}  // namespace lockstep::dist
