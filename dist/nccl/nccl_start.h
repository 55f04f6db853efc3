#pragma once

#include <string>

#include "dist/group/process_group.h"
#include "dist/nccl/nccl_communicator.h"
#include "dist/nccl/nccl_device.h"

namespace lockstep::dist {

/// What ranks compare before NCCL is asked for anything, which would only hang: that each has a
/// device of its own, and one version of NCCL. Returns rank 0's identifier. All ranks of `group`
/// call it, and get the same error: BackendError, which names the ranks.
nccl::UniqueId exchange_nccl_start(ProcessGroup& group, const NcclLibrary& library,
                                   const NcclDevice& device, const CollectiveOptions& options);

/// For an operation that others may not make: all ranks tell what theirs is. Throws MismatchError,
/// which names two ranks with both.
void compare_nccl_calls(ProcessGroup& group, const std::string& op, const std::string& call,
                        const CollectiveOptions& options);

}  // namespace lockstep::dist
