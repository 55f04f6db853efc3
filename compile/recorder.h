#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compile/host_read.h"
#include "core/dispatch/mode.h"

namespace lockstep::compiler {

/// Records the operators that reach backends while it is active, as a graph without side effects:
/// what is changed in place becomes a new value, and views of it are taken anew. The calls run as
/// they would without it, and tensors that nobody else holds are freed. Where something cannot be
/// recorded, `failure()` says what; calls still run. Not thread-safe; belongs to the thread that
/// records.
///
/// Tensors that the program reads and that are neither inputs nor results become inputs behind
/// those that were announced: `inputs()`.
class Recorder final : public DispatchMode {
 public:
  void call(const Operator& op, KeySet keys, Stack& stack) override;
  bool records() const override { return true; }

  /// Whether the program is split where the host reads values; otherwise that cannot be recorded,
  /// which is so at first.
  void split_at_reads(bool splits) { splits_ = splits; }

  /// Announces a tensor as the next input of the graph.
  void add_input(const Tensor& tensor);
  /// The value that the tensor has now, kAbsent for an undefined one.
  ValueId value_of(const Tensor& tensor);
  /// Whether the tensor is an input, and which.
  std::optional<size_t> input_index(const Tensor& tensor) const;
  /// Whether the tensor shares memory with an input that was changed, without being that input.
  bool is_view_of_changed_input(const Tensor& tensor) const;
  /// The changed inputs and their values now.
  std::vector<Graph::Write> writes();

  /// Nodes and values so far, without outputs and writes.
  const Graph& graph() const { return graph_; }
  /// Where the host reads values, if the program is split there.
  const std::vector<HostRead>& reads() const { return reads_; }
  /// The tensors of graph().inputs.
  const std::vector<Tensor>& inputs() const { return inputs_; }
  /// Why the program cannot be recorded, or empty.
  const std::string& failure() const { return failure_; }
  void fail(std::string reason);

 private:
  /// Memory that recorded tensors share.
  struct Memory {
    Tensor base;              ///< the first tensor seen of it
    ValueId value = kAbsent;  ///< of base, as it is now
    uint64_t generation = 0;  ///< grows with each change
    bool is_input = false;
    bool is_shared = false;         ///< two inputs lie in it
    bool is_uninitialised = false;  ///< made by `empty`, and no operator has written it
    std::vector<const TensorImpl*> tensors = {};  ///< the known ones that lie in it
  };
  /// A tensor with its value, which holds while the memory has this generation.
  struct Known {
    Tensor tensor;
    Memory* memory = nullptr;
    ValueId value = kAbsent;
    uint64_t generation = 0;
  };

  /// The value of a tensor whose elements are read.
  ValueId value_read(const Tensor& tensor);
  Memory* memory_of(const Tensor& tensor) const;
  void know(const Tensor& tensor, ValueId value);
  /// Notes the value that the tensor, which lies in the memory, has now.
  void note(const Tensor& tensor, Memory& memory, ValueId value);
  /// Adds a node with one new result and returns that.
  ValueId add_node(const Operator& op, std::vector<NodeArgument> arguments, const ValueType& type);
  /// Adds a node with the elements of a tensor as its memory, which was changed, has them now.
  ValueId add_view_of_base(const Tensor& tensor, const Memory& memory);
  /// A known tensor of the same memory with the same geometry, whose value is up to date.
  std::optional<ValueId> twin_of(const Tensor& tensor, const Memory& memory) const;
  std::vector<NodeArgument> arguments_of(const Operator& op, std::span<const Value> arguments);
  /// The tensor holds `value` now, and so do those that share its memory, where they overlap.
  void change(const Tensor& tensor, ValueId value);
  /// Records a call, and passes it on.
  void record(const Operator& op, KeySet keys, Stack& stack);
  /// Passes a call on that reads values on the host, and notes what it gives.
  void record_read(const Operator& op, KeySet keys, Stack& stack);
  /// Notes the sizes of the results of the last node.
  void record_sizes();
  void record_results(Node& node, const Stack& stack);
  /// Lets go of tensors that nobody else holds, because no later call can name them: of those that
  /// the last calls used at once, of others within an eighth as many calls as there is memory.
  void forget_unreachable();
  /// Lets go of the tensors in the memory, and returns whether nobody else holds any.
  bool forget(const Memory& memory);
  static bool is_unreachable(const Memory& memory);

  Graph graph_;
  std::vector<HostRead> reads_;
  bool splits_ = false;
  std::vector<Tensor> inputs_;
  std::unordered_map<const Storage*, std::unique_ptr<Memory>> memories_;
  std::unordered_map<const TensorImpl*, Known> known_;
  std::vector<const Storage*> used_;         ///< by the call under way
  std::vector<const Storage*> used_before_;  ///< by the call before
  size_t calls_since_look_ = 0;              ///< at all memory
  std::string failure_;
};

}  // namespace lockstep::compiler
