#include "autograd/vmap.h"

#include "core/base/check.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

std::optional<int64_t> dim_of(const std::vector<std::optional<int64_t>>& dims, size_t i) {
  return dims.empty() ? std::optional<int64_t>(0) : dims[i];
}

int64_t wrapped(std::string_view what, size_t i, int64_t dim, const Tensor& tensor, int64_t rank) {
  LS_CHECK(dim >= -rank && dim < rank, IndexError,
           "[vmap] {} {} has no dimension {} for the samples: expected one in [{}, {}] for shape "
           "{}.",
           what, i, dim, -rank, rank - 1, tensor.shape());
  return dim < 0 ? dim + rank : dim;
}

/// Returns the batch size of the inputs. Throws ShapeError if they differ.
int64_t batch_of(TensorList inputs, const VmapOptions& options) {
  const auto& dims = options.in_dims;
  LS_CHECK(dims.empty() || dims.size() == inputs.size(), ShapeError,
           "[vmap] in_dims must have one entry per input: expected {} entries, got {}.",
           inputs.size(), dims.size());
  int64_t batch = -1;
  size_t first = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<int64_t> dim = dim_of(dims, i);
    if (!dim) continue;
    const Tensor& input = inputs[i];
    const int64_t size = input.size(wrapped("input", i, *dim, input, input.dim()));
    LS_CHECK(batch < 0 || size == batch, ShapeError,
             "[vmap] the inputs hold different numbers of samples: input {} holds {}, input {} "
             "(shape {}, in_dim {}) holds {}. Give inputs that are no batch the in_dim nullopt.",
             first, batch, i, input.shape(), *dim, size);
    if (batch < 0) first = i;
    batch = size;
  }
  LS_CHECK(batch >= 0, ShapeError,
           "[vmap] no input is a batch: expected at least one in_dim that is a dimension. Call the "
           "function itself instead.");
  return batch;
}

Tensor moved(const Tensor& whole, int64_t from, int64_t to) {
  if (from == to) return whole;
  Dims order;
  for (int64_t i = 0; i < whole.dim(); ++i) {
    if (i != from) order.push_back(i);
  }
  order.insert(static_cast<size_t>(to), from);
  return whole.permute(order);
}

/// Returns output `i` with the batch at dimension `out_dim`. Called inside the level's guard.
Tensor unwrapped(const Tensor& output, size_t i, std::optional<int64_t> out_dim, size_t depth) {
  LS_CHECK(output.defined(), AutogradError,
           "[vmap] output {} is undefined: expected a tensor. Return only defined tensors.", i);
  if (const Batched* any = find_batched(output)) check_level_runs("vmap", *any);
  const Batched* batched = find_batched(output, depth);
  if (!out_dim) {
    LS_CHECK(batched == nullptr, ShapeError,
             "[vmap] output {} differs from sample to sample, and its out_dim says that it does "
             "not: expected a dimension, got nullopt. Set out_dims.",
             i);
    return output;
  }
  const int64_t to = wrapped("output", i, *out_dim, output, output.dim() + 1);
  const Tensor whole = batched != nullptr ? batched->whole : expanded_in_front(output, depth);
  const int64_t from = batched != nullptr ? batched->dim : 0;
  const OuterVmapsGuard outer(depth);
  return moved(whole, from, to);
}

}  // namespace

std::vector<Tensor> vmap(const TensorsFunction& function, TensorList inputs,
                         const VmapOptions& options) {
  const VmapLevelGuard running(batch_of(inputs, options), options.randomness);
  std::vector<Tensor> samples;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<int64_t> dim = dim_of(options.in_dims, i);
    const Tensor& input = inputs[i];
    samples.push_back(
        dim ? batched_tensor(input, wrapped("input", i, *dim, input, input.dim()), running.depth())
            : input);
  }
  std::vector<Tensor> outputs = function(samples);
  LS_CHECK(options.out_dims.empty() || options.out_dims.size() == outputs.size(), ShapeError,
           "[vmap] out_dims must have one entry per output: expected {} entries, got {}.",
           outputs.size(), options.out_dims.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = unwrapped(outputs[i], i, dim_of(options.out_dims, i), running.depth());
  }
  return outputs;
}

}  // namespace lockstep
