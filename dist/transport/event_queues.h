#pragma once

#include <set>

namespace lockstep::dist {

/// Returns the descriptors of this process that are epoll queues.
std::set<int> open_event_queues();

}  // namespace lockstep::dist
