#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "dist/group/communicator.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Returns the communicators of ranks that are threads of this process; element r is for rank r.
/// `hosts`, by rank: for plans as if ranks were on several hosts; empty: on one.
std::vector<std::shared_ptr<Communicator>> thread_communicators(
    int size, const Communicator::Options& options = {}, const std::vector<int>& hosts = {});

/// Returns groups whose ranks are threads of this process; element r is for rank r's thread. Each
/// rank has a communication thread in addition.
///
/// Ranks that share a device with streams must use separate streams: on a common stream, one rank's
/// wait for an operation would block the work that another rank queues to take part in it.
///
/// A rank that destroys its group while it unwinds from an exception makes the others' operations
/// fail with PeerLostError.
std::vector<std::unique_ptr<ProcessGroup>> thread_group(int size,
                                                        const Communicator::Options& options = {},
                                                        const std::vector<int>& hosts = {});

/// Runs `body` on `size` ranks, each in a thread with its own group, and waits for all. Returns the
/// exception that each rank threw, or null.
std::vector<std::exception_ptr> run_thread_ranks(int size,
                                                 const std::function<void(ProcessGroup&)>& body,
                                                 const Communicator::Options& options = {},
                                                 const std::vector<int>& hosts = {});

}  // namespace lockstep::dist
