#pragma once

#include <span>
#include <vector>

#include "core/tensor/tensor.h"
#include "dist/collectives/operation.h"

namespace lockstep::dist {

/// Converts operations to ones that NCCL supports: reductions of int16 become those of int32
/// copies. The low 16 bits of sums and products are the same.
class NcclWidened {
 public:
  /// Converts operations on `tensors` of rank `rank` of `size`. Copies are made on the current
  /// stream.
  NcclWidened(std::vector<Operation> operations, std::span<const Tensor> tensors, int rank,
              int size);

  const std::vector<Operation>& operations() const noexcept { return operations_; }
  /// Call after queueing the operations: queues the conversion of results, on the current stream.
  void narrow() const;

 private:
  struct Copy {
    Tensor output;
    Tensor wide;
  };
  std::vector<Operation> operations_;
  std::vector<Tensor> inputs_;
  std::vector<Copy> copies_;
};

}  // namespace lockstep::dist
