#pragma once

#include <optional>
#include <string>

namespace lockstep::dist {

/// Configuration of a group's NCCL communicator; NCCL and its environment variables choose values
/// that are not set. Must be equal on all ranks. Communicators are always non-blocking, so that a
/// wait can be given up.
struct NcclConfig {
  /// Thread blocks that an operation uses, 1 to 64. Fewer leave more of the GPU to compute kernels.
  std::optional<int> min_ctas = {};
  std::optional<int> max_ctas = {};
  /// Thread blocks per cluster, 0 to 8; 0 disables clusters.
  std::optional<int> cga_cluster_size = {};
  /// Network plug-in to use ("IB", "Socket") if there are several.
  std::string net_name = {};
  /// Whether subgroups share their parent's buffers and connections: less memory, but operations of
  /// both then take turns.
  bool split_share = false;
  /// Traffic class for InfiniBand and RoCE; NCCL 2.25 and newer.
  std::optional<int> traffic_class = {};
};

}  // namespace lockstep::dist
