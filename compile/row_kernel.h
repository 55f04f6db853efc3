#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compile/group_kernel.h"
#include "compile/row_places.h"
#include "core/dispatch/row_step.h"

namespace lockstep::compiler {

class Interpreter;

/// Whether the operator along rows, which `places` has taken, has a kernel that can be part of
/// others. Calls it on a few rows.
bool has_row_step(const Graph& graph, const Node& node, const RowPlaces& places);

/// Nodes that compute row by row as a program of which a backend makes one kernel.
class RowKernelProgram {
 public:
  /// A value with memory.
  struct Bound {
    size_t slot;
    ValueId value;
  };

  explicit RowKernelProgram(const Rows& rows);

  /// Adds a node that `places` has taken, behind those whose results it reads, and returns true;
  /// false if it has no kernel of its own that can be part of others. Calls the operator on a few
  /// rows to see what its kernel does. What the node makes is written to memory where it `is_kept`.
  bool add(const Graph& graph, const Node& node, const RowPlaces& places,
           const std::vector<bool>& is_kept);
  /// How one kernel computes the nodes; null if none can. If one can, then also one that keeps
  /// more.
  std::unique_ptr<const RowPlan> plan() const;

  const std::vector<Bound>& operands() const { return operands_; }
  const std::vector<Bound>& results() const { return results_; }
  size_t slots() const { return program_.slots.size(); }

 private:
  int32_t slot_of(const Graph& graph, ValueId id, const RowPlaces& places);
  int32_t add_made(const Graph& graph, ValueId id, const RowPlaces& places,
                   const std::vector<bool>& is_kept);

  RowProgram program_;
  Device device_;
  std::vector<Bound> operands_;
  std::vector<Bound> made_;
  std::vector<Bound> results_;
};

/// How a group of operators that work row by row runs where one kernel can compute it (fuse_rows):
/// each row with all of them. Until the kernel is there, and for tensors that do not lie as it
/// needs them, with the operators' own kernels. Thread-safe; `request_kernel` is called before
/// others run it.
class RowKernelGroup {
 public:
  /// As RowGroup. Throws Error for nodes of which no kernel can be made.
  RowKernelGroup(const Graph& graph, std::span<const Node> nodes,
                 const std::vector<bool>& is_read_later, const RowKernelGroup* alike = nullptr);
  ~RowKernelGroup();
  RowKernelGroup(const RowKernelGroup&) = delete;
  RowKernelGroup& operator=(const RowKernelGroup&) = delete;

  /// Has a kernel made for the group; nothing for a group that has one.
  void request_kernel();
  const GroupKernel& kernel() const { return kernel_; }

  /// Computes the values of the group that are read later. `values` holds its operands.
  void run(std::vector<Tensor>& values) const;

 private:
  /// Computes the results with the operators' own kernels.
  std::vector<Tensor> run_apart(const std::vector<Tensor>& values) const;
  /// Computes them with one. Nothing if the operands do not lie as it needs them.
  std::vector<Tensor> run_kernel(const std::vector<Tensor>& values, LoopKernel kernel) const;
  /// Whether a kernel computes the bits that the operators do.
  KernelTrial attempt(const std::vector<Tensor>& values, LoopKernel kernel) const;

  RowKernelProgram program_;
  std::unique_ptr<const RowPlan> plan_;
  std::vector<ValueType> result_types_;
  std::shared_ptr<const Interpreter> apart_;
  std::string names_;  ///< of the operators
  Device device_;
  GroupKernel kernel_;
};

}  // namespace lockstep::compiler
