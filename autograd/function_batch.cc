// A Function under vmap.

#include <algorithm>

#include "autograd/function_node.h"
#include "core/base/check.h"

namespace lockstep::detail {

std::optional<size_t> batched_depth(const FunctionInfo& info, const FunctionInputs& inputs) {
  std::optional<size_t> depth;
  for (const Tensor& input : inputs) {
    const Batched* batched = input.defined() ? find_batched(input) : nullptr;
    if (batched == nullptr) continue;
    check_level_runs(function_name(info.type), *batched);
    depth = std::max(depth.value_or(0), batched->depth);
  }
  return depth;
}

FunctionBatch batch_of(const FunctionInputs& inputs, size_t depth) {
  const VmapLevel& level = vmap_levels().at(depth);
  FunctionBatch batch{level.batch, level.randomness, {}};
  for (const Tensor& input : inputs) {
    batch.batched.push_back(input.defined() && find_batched(input, depth) != nullptr);
  }
  return batch;
}

Tensor with_batch_in_front(const Tensor& tensor, size_t depth) {
  const Batched* batched = tensor.defined() ? find_batched(tensor, depth) : nullptr;
  return batched != nullptr ? whole_in_front(*batched) : tensor;
}

void give_samples(const FunctionInfo& info, const FunctionResults& results, size_t depth) {
  const int64_t batch = vmap_levels().at(depth).batch;
  for (Tensor* result : results) {
    if (!result->defined()) continue;
    LS_CHECK(result->dim() > 0 && result->size(0) == batch, AutogradError,
             "[{}] its vmap method returned {}: expected the batch of {} in front. Expand what is "
             "the same for all samples.",
             function_name(info.type), to_string(*result), batch);
    *result = batched_tensor(*result, 0, depth);
  }
}

void throw_no_vmap(const FunctionInfo& info) {
  throw AutogradError(fmt::format(
      "[{}] has no vmap method, and an argument is one sample of a batch. Give it a static method "
      "vmap(const FunctionBatch&, ...) with forward's other parameters, or call it outside of "
      "vmap.",
      function_name(info.type)));
}

}  // namespace lockstep::detail
