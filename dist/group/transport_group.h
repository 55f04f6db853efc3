#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dist/group/communicator.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Returns the group of all ranks of a communicator. Accepts tensors on the cpu and on devices with
/// streams; if the cpu cannot access the device's memory (cuda), data goes through copies on the
/// cpu (dist/group/staging.h). `backend` names the kind of transport and must be a literal.
std::unique_ptr<ProcessGroup> transport_group(std::shared_ptr<Communicator> communicator,
                                              const char* backend);

/// By rank of `group`: the number of its host, in the order of their first ranks. The order in
/// which sums are added depends on it (dist/collectives/sum_order.h). Empty for groups of other
/// kinds, which cannot tell.
std::vector<int> hosts_of(const ProcessGroup& group);

}  // namespace lockstep::dist
