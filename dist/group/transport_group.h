#pragma once

#include <memory>
#include <string>

#include "dist/group/communicator.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Returns the group of all ranks of a communicator. Accepts tensors on the cpu and on devices with
/// streams; if the cpu cannot access the device's memory (cuda), data goes through copies on the
/// cpu (dist/group/staging.h). `backend` names the kind of transport and must be a literal.
std::unique_ptr<ProcessGroup> transport_group(std::shared_ptr<Communicator> communicator,
                                              const char* backend);

}  // namespace lockstep::dist
