#pragma once

#include <set>

namespace lockstep::dist {

/// Descriptors of this process that are event queues (epoll).
std::set<int> open_event_queues();

}  // namespace lockstep::dist
