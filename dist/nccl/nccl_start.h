#pragma once

#include <string>
#include <vector>

#include "dist/group/process_group.h"
#include "dist/nccl/nccl_communicator.h"
#include "dist/nccl/nccl_device.h"

namespace lockstep::dist {

/// Checks that each rank has a device of its own and all have the same NCCL version, as NCCL itself
/// would hang. Returns rank 0's ncclUniqueId, and where the library can use several, those of the
/// ranks that are multiples of `ranks_of_an_id`. Collective. Throws BackendError, naming the ranks,
/// on all ranks.
std::vector<nccl::UniqueId> exchange_nccl_start(ProcessGroup& group, const NcclLibrary& library,
                                                const NcclDevice& device, int ranks_of_an_id,
                                                const CollectiveOptions& options);

/// Compares the ranks' descriptions of their next operation. Collective. Throws MismatchError,
/// which names two ranks with their calls.
void compare_nccl_calls(ProcessGroup& group, const std::string& op, const std::string& call,
                        const CollectiveOptions& options);

}  // namespace lockstep::dist
