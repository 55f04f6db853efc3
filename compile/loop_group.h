#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compile/graph.h"
#include "core/dispatch/element_loop.h"

namespace lockstep::compiler {

/// The loop of a node that computes each element of one contiguous tensor from the elements at the
/// same place of others, of rows that repeat, and of numbers; nothing for other nodes. Calls the
/// operator on a few elements to see what its kernel does.
struct NodeLoop {
  std::shared_ptr<const ElementLoop> loop;
  std::vector<ValueId> operands;
};
std::optional<NodeLoop> loop_of(const Graph& graph, const Node& node);

/// How a group of such nodes (fuse_pointwise) runs: as one pass over memory. Immutable.
class LoopGroup {
 public:
  /// `is_read_later` says of a value whether anything outside the group reads it. Throws Error for
  /// a node without a loop.
  LoopGroup(const Graph& graph, std::span<const Node> nodes,
            const std::vector<bool>& is_read_later);

  /// Computes the values of the group that are read later. `values` holds its operands.
  void run(std::vector<Tensor>& values) const;

 private:
  /// The value of a slot that has memory.
  struct Bound {
    size_t slot;
    ValueId value;
  };
  LoopProgram program_;
  std::vector<Bound> operands_;
  std::vector<Bound> results_;
  std::vector<ValueType> result_types_;
  int64_t count_ = 0;  ///< elements
  LoopRunner runner_ = nullptr;
};

}  // namespace lockstep::compiler
