#include "dist/nccl/nccl_widened.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "dist/nccl/nccl_calls.h"

namespace lockstep::dist {
namespace {

/// Returns the tensor with the given address and number of elements.
const Tensor& find(std::span<const Tensor> tensors, const void* data, int64_t count) {
  const auto found = std::ranges::find_if(tensors, [&](const Tensor& tensor) {
    return tensor.data() == data && tensor.numel() == count;
  });
  LS_ASSERT(found != tensors.end());
  return *found;
}

}  // namespace

NcclWidened::NcclWidened(std::vector<Operation> operations, std::span<const Tensor> tensors,
                         int rank, int size)
    : operations_(std::move(operations)) {
  for (Operation& operation : operations_) {
    if (!is_reduction(operation.kind) || nccl_reduces(operation.dtype)) continue;
    const bool scatters = operation.kind == OpKind::kReduceScatter;
    const Tensor& output = find(tensors, operation.output, operation.count);
    inputs_.push_back(
        find(tensors, operation.input, operation.count * (scatters ? size : 1)).to(DType::kI32));
    const Tensor wide =
        scatters ? empty({operation.count}, {DType::kI32, output.device()}) : inputs_.back();
    operation.dtype = DType::kI32;
    operation.input = inputs_.back().data();
    operation.output = wide.data();
    const bool gets = operation.kind != OpKind::kReduce || operation.root == rank;
    if (gets) copies_.push_back({output.view({output.numel()}), wide.view({wide.numel()})});
  }
}

void NcclWidened::narrow() const {
  for (const Copy& copy : copies_) copy.output.copy_(copy.wide);
}

}  // namespace lockstep::dist
