#pragma once

#include <span>
#include <vector>

#include "compile/graph.h"

namespace lockstep::compiler {

/// How a group of element-wise nodes (fuse_pointwise) runs block by block. Immutable.
class BlockRun {
 public:
  /// `nodes` must outlive it; `is_read_later` says of a value whether anything outside the group
  /// reads it.
  BlockRun(const Graph& graph, std::span<const Node> nodes, const std::vector<bool>& is_read_later);

  /// Computes the values of the group that are read later. `values` holds its operands.
  void run(std::vector<Tensor>& values) const;

 private:
  /// What a node reads in a block: a value from outside, whole or a part of it, or what an earlier
  /// node of the group left in a slot.
  struct Operand {
    enum class Kind : uint8_t { kConstant, kAbsent, kWhole, kPart, kSlot };
    Kind kind = Kind::kConstant;
    ValueId value = kAbsent;
    size_t slot = 0;
  };
  struct Step {
    const Operator* op = nullptr;  ///< the out= form if the result is read later and there is one
    std::vector<Operand> operands;
    std::vector<Value> constants;  ///< by operand
    ValueId result = kAbsent;      ///< set if it is read later
    bool writes_result = false;    ///< `op` is an out= form
    std::vector<size_t> released;  ///< slots that nothing reads behind this step
  };

  void run_block(int64_t first, int64_t length, const std::vector<Tensor>& values) const;

  const Graph& graph_;
  std::vector<Step> steps_;  ///< step i leaves its result in slot i
  int64_t count_ = 0;        ///< elements
};

}  // namespace lockstep::compiler
