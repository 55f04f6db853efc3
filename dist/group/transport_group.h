#pragma once

#include <memory>
#include <string>

#include "dist/group/communicator.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// The group of all ranks of a communicator. Takes tensors of the cpu and of devices with streams;
/// those whose memory the cpu does not reach (cuda) go through copies there (dist/group/staging.h).
/// `backend` names the kind of transport and must be a literal.
std::unique_ptr<ProcessGroup> transport_group(std::shared_ptr<Communicator> communicator,
                                              const char* backend);

}  // namespace lockstep::dist
