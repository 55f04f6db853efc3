#pragma once

#include <cstddef>
#include <vector>

namespace lockstep::compiler {

/// A network of arcs with capacities, of which a minimum cut is wanted: the arcs from the side of a
/// source to that of a sink whose capacities add up to the least. By Dinic's algorithm (E. A.
/// Dinic, 1970), which is fast enough for thousands of arcs.
class FlowNetwork {
 public:
  explicit FlowNetwork(size_t nodes) : arcs_(nodes) {}

  /// `capacity` is at least 0, and may be infinite where each way to the sink has a finite arc.
  void add_arc(size_t from, size_t to, double capacity);

  /// Returns, by node, whether it is on the source's side of a minimum cut: that of all minimum
  /// cuts with the fewest nodes there. To be called once.
  std::vector<bool> source_side(size_t source, size_t sink);

 private:
  struct Arc {
    size_t to;
    double left;      ///< of the capacity
    size_t backward;  ///< place of the opposite arc in arcs_[to]
  };

  /// Distances from the source along arcs with capacity left; -1 where there is no way.
  std::vector<int> distances(size_t source) const;
  /// Sends up to `most` from a node to the sink along growing distances, and returns how much.
  double send(size_t from, size_t sink, double most, const std::vector<int>& distance,
              std::vector<size_t>& next);

  std::vector<std::vector<Arc>> arcs_;  ///< by the node they leave
};

}  // namespace lockstep::compiler
