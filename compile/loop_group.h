#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compile/graph/graph.h"
#include "compile/group_kernel.h"

namespace lockstep::compiler {

struct MaskDraw;  // compile/block_filled.h
struct RowGather;

/// The loop of a node that computes each element of one contiguous tensor from the elements at the
/// same place of others, of rows that repeat, and of numbers; nothing for other nodes. Calls the
/// operator on a few elements to see what its kernel does.
struct NodeLoop {
  std::shared_ptr<const ElementLoop> loop;
  std::vector<ValueId> operands;
};
std::optional<NodeLoop> loop_of(const Graph& graph, const Node& node);
/// Whether element i of the node's only result can only depend on elements of its arguments.
bool is_elementwise(const Node& node);
/// Whether the sizes are those of `of` but for the last, which is 1.
bool is_column_of(const Dims& sizes, const Dims& of);

/// How a group of such nodes (fuse_pointwise) runs: as one pass over memory, with the operators'
/// own loops or with a kernel that was made of the same functors. Rows that nodes of the group
/// gather, and truths that they draw (compile/block_filled.h), are there while a block is computed.
/// Thread-safe; `request_kernel` is called before others run it.
class LoopGroup {
 public:
  /// `is_read_later` says of a value whether anything outside the group reads it. Throws Error for
  /// a node without a loop.
  LoopGroup(const Graph& graph, std::span<const Node> nodes,
            const std::vector<bool>& is_read_later);
  /// One that runs as `alike`, on values of other sizes: `nodes` are the same calls. Throws Error
  /// where a value of these sizes is read in another way.
  LoopGroup(const LoopGroup& alike, const Graph& graph, std::span<const Node> nodes);

  /// Has a kernel made for the group. Nothing for a group that has one, or if the backend writes no
  /// source for it.
  void request_kernel();
  const GroupKernel& kernel() const { return kernel_; }

  /// Computes the values of the group that are read later. `values` holds its operands, and may
  /// hold memory for results.
  void run(std::vector<Tensor>& values) const;

 private:
  /// The source of a kernel for the group; empty if the backend writes none.
  LoopSource source() const;

  /// The value of a slot that has memory.
  struct Bound {
    size_t slot;
    ValueId value;
    ValueId reader = kAbsent;  ///< the result whose elements read the operand; none of a table
  };

  /// Numbers of the rows that a slot gathers.
  struct Gather {
    size_t slot;
    Node node;
    ValueId indices;
    int64_t rows;  ///< of the table
    bool wraps;    ///< negative numbers count from the end
  };

  int32_t add_slot(LoopProgram::Slot slot);
  /// The slot of what the group makes, or of an operand as `result` reads it, which is added.
  int32_t slot_of(const Graph& graph, ValueId id, ValueId result);
  /// Adds what computes `id`, and the memory for it if it `is_kept`.
  void add_result(const Graph& graph, ValueId id, const NodeLoop& loop, bool is_kept);
  void add_gather(const Graph& graph, const Node& node, const RowGather& gather);
  void add_draw(const Graph& graph, const MaskDraw& draw, const std::vector<bool>& is_read_later);
  /// Binds the result slot of a value to memory if it `is_kept`.
  void bind_result(const Graph& graph, ValueId id, int32_t slot, bool is_kept);
  /// Numbers of rows in the cpu's memory, those of the tensor itself or in `own`. Throws what the
  /// operator throws for numbers out of range.
  static const int64_t* row_numbers(const Gather& gather, const std::vector<Tensor>& values,
                                    std::vector<int64_t>& own);
  LoopProgram program_;
  std::vector<Bound> operands_;
  std::vector<Bound> results_;
  std::vector<ValueType> result_types_;
  std::vector<Gather> gathers_;
  size_t draws_ = 0;
  std::string names_;  ///< of the operators
  int64_t count_ = 0;  ///< elements
  Device device_;
  const LoopBackend* backend_ = nullptr;
  std::unordered_map<ValueId, int32_t> slots_;  ///< of values it makes; used in the constructor
  GroupKernel kernel_;
};

}  // namespace lockstep::compiler
