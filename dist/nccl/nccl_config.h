#pragma once

#include <optional>
#include <string>

namespace lockstep::dist {

/// How a group's NCCL communicator is made; what is left out is NCCL's to choose, and its
/// environment variables'. Equal on all ranks. Communicators are always non-blocking: whoever waits
/// can stop waiting.
struct NcclConfig {
  /// Thread blocks that an operation takes from the GPU; 1 to 64. Fewer leave more to computing.
  std::optional<int> min_ctas;
  std::optional<int> max_ctas;
  /// Thread blocks to a cluster, 0 to 8; 0 for none.
  std::optional<int> cga_cluster_size;
  /// The network plug-in ("IB", "Socket") where there are several.
  std::string net_name;
  /// Whether subgroups share their parent's buffers and connections: less memory, but operations of
  /// both then take turns.
  bool split_share = false;
  /// For InfiniBand and RoCE, from 2.25 on.
  std::optional<int> traffic_class;
};

}  // namespace lockstep::dist
