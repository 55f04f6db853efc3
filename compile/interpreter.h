#pragma once

#include <map>
#include <vector>

#include "compile/graph/memory_plan.h"
#include "compile/loop_group.h"
#include "compile/row_group.h"
#include "compile/row_kernel.h"
#include "core/base/function_ref.h"

namespace lockstep::compiler {

/// Runs a graph operator by operator, below autograd and autocast: with the kernels that eager
/// calls run, in the graph's order. Tensors are released behind their last use. Immutable, so
/// several threads may run it at once.
class Interpreter {
 public:
  /// `places` are inputs without values, memory for the results of operators that write them.
  /// Throws Error when `check(graph)` does.
  explicit Interpreter(Graph graph, const std::vector<ValueId>& places = {});
  /// Makes one whose outputs can be sent early: `not_before[i]` lists the values of which none
  /// is read any more when output i is sent. Others wait for the end, where the list is shorter.
  Interpreter(Graph graph, const std::vector<ValueId>& places,
              const std::vector<std::vector<ValueId>>& not_before);
  /// Makes one that runs a graph of the same calls as that of `alike`, which differs in sizes, and
  /// in integers that are arguments. Throws Error where the groups cannot run with these.
  Interpreter(Graph graph, const Interpreter& alike);

  /// Takes an output as soon as it is there, and returns true, or leaves it as it is.
  using SendOutput = FunctionRef<bool(size_t output, Tensor& value)>;

  /// Takes one tensor per input, of its type, and returns one per output. Inputs are released like
  /// other tensors, so those that nobody else holds live no longer than they are needed. Throws
  /// what operators throw; writes into inputs come last, so that these are then as they were.
  std::vector<Tensor> run(std::vector<Tensor> inputs) const;
  /// Does the same and calls `send` for outputs that can be sent early; those that it takes are
  /// returned undefined.
  std::vector<Tensor> run(std::vector<Tensor> inputs, const SendOutput& send) const;
  /// Does the same and leaves the outputs in `results`, one tensor of its type for each.
  void run_into(std::vector<Tensor> inputs, std::span<const Tensor> results) const;

  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  const Graph& graph() const { return graph_; }

  /// Has kernels made for the groups of the graph that have none. To be called before the first
  /// run.
  void request_kernels();
  /// The kernels of the groups, and of those inside of others.
  std::vector<const GroupKernel*> kernels() const;

 private:
  using Buffers = std::vector<Ref<Storage>>;  ///< those of a run's plan that are in use
  /// A result that shares a buffer.
  struct Sharing {
    ValueId value;
    size_t result;  ///< which of its node's
    size_t buffer;
    size_t bytes;
  };
  /// What a caller of a run wants besides the outputs.
  struct Wishes {
    const SendOutput* send = nullptr;
    std::span<const Tensor> results = {};
  };
  std::vector<Tensor> run(std::vector<Tensor> inputs, const Wishes& wishes) const;
  void run_node(size_t at, std::vector<Tensor>& values, Buffers& buffers) const;
  /// The memory of a result, for which its buffer is allocated unless it is there.
  Ref<Storage> memory_of(const Sharing& result, Buffers& buffers) const;
  /// Runs the group that begins at a node.
  void run_group(size_t first, std::vector<Tensor>& values, Buffers& buffers) const;
  /// The tensor that the node at `at` may write instead of a copy of `id`: `id` itself, taken out
  /// of `values`, where nothing else can read its elements.
  Tensor take_written(size_t at, ValueId id, std::vector<Tensor>& values) const;

  /// Calls the nodes that run once.
  void make_constants();
  /// Adds which results share the buffers of the graph's plan.
  void prepare_buffers();
  /// Adds how the groups of the graph run: as those of `alike`, unless it is null.
  void prepare_groups(const Interpreter* alike);

  Graph graph_;
  std::vector<size_t> last_reads_;              ///< by value: the node, ~0 if it lives on
  std::vector<bool> is_place_;                  ///< by value
  std::vector<bool> is_read_;                   ///< by value
  std::vector<bool> writes_;                    ///< by node: whether it writes an argument
  std::vector<std::vector<ValueId>> released_;  ///< by node: what nothing behind it reads
  std::vector<std::vector<size_t>> sent_;       ///< by node: outputs that can be sent behind it
  std::vector<std::pair<ValueId, Tensor>> constants_;  ///< of nodes that run once
  std::map<size_t, LoopGroup> loops_;                  ///< by first node
  std::map<size_t, RowGroup> rows_;                    ///< by first node
  std::map<size_t, RowKernelGroup> row_kernels_;       ///< by first node
  std::vector<size_t> group_ends_;                     ///< by first node: one behind its last
  std::vector<PlannedBuffer> buffers_;
  std::vector<std::vector<Sharing>> sharing_;    ///< by node, or first node of a group
  std::vector<std::vector<size_t>> given_back_;  ///< by node: buffers that nothing behind it has
};

}  // namespace lockstep::compiler
