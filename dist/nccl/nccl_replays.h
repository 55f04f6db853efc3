#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "dist/collectives/operation.h"
#include "dist/nccl/nccl_watch.h"

namespace lockstep::dist {

/// What a group does for replays of captured graphs that have operations of it.
struct NcclReplayHooks {
  /// Throws if the group cannot communicate any more.
  std::function<void()> check;
  /// Numbers, records and describes operations.
  std::function<NcclQueued(const std::vector<Operation>&, std::chrono::milliseconds timeout)> note;
  std::function<void(NcclQueued)> watch;
};

/// Adds operations to those of the graph that this thread captures. Each replay is checked before,
/// and watched as one operation of the longest timeout, as long as `group` exists.
void watch_nccl_replays(const std::shared_ptr<const NcclReplayHooks>& group,
                        const std::vector<Operation>& operations,
                        std::chrono::milliseconds timeout);

}  // namespace lockstep::dist
