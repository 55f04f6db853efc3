#pragma once

#include <memory>
#include <vector>

#include "dist/transport/transport.h"

namespace lockstep::dist {

/// Returns transports between `size` ranks that are threads of this process; element r is rank r's.
/// The receiver's thread copies directly from the sender's memory. When one is destroyed, messages
/// that others have posted to it or from it fail, except those already received.
std::vector<std::unique_ptr<Transport>> thread_transports(int size);

}  // namespace lockstep::dist
