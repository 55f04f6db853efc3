#pragma once

#include <memory>
#include <vector>

#include "dist/transport/transport.h"

namespace lockstep::dist {

/// Transports between `size` ranks that are threads of this process; element r is rank r's. The
/// receiver's thread copies from the sender's memory, once. One that is destroyed is gone to the
/// others: what they have posted to it and from it fails, but for messages that it had sent and
/// that were received already.
std::vector<std::unique_ptr<Transport>> thread_transports(int size);

}  // namespace lockstep::dist
