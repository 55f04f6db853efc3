#pragma once

#include <concepts>
#include <optional>
#include <vector>

#include "autograd/batched_tensor.h"
#include "autograd/tensor_functions.h"

namespace lockstep {

struct VmapOptions {
  /// For each input the dimension that holds the samples, negative ones counted from the last;
  /// nothing means that every sample gets the whole input. Empty: 0 for all.
  std::vector<std::optional<int64_t>> in_dims;
  /// For each output where the samples go; nothing for one that is the same for all of them.
  /// Empty: 0 for all.
  std::vector<std::optional<int64_t>> out_dims;
  Randomness randomness = Randomness::kError;
};

/// Calls `function`, which is written for one sample, once for a whole batch: what it returns is
/// what calling it for each sample and stacking the results would give. Inside, a batched tensor
/// has the sizes of one sample. Operators with a batching rule treat the batch in one call; the
/// others run once per sample (see operators_run_per_sample in core/ops/batching.h).
///
/// May be nested, and composes with grad (autograd/transforms.h). What is recorded is recorded on
/// the whole batch, so a backward outside works as ever; call grad, not backward, inside. A batched
/// tensor must not leave the function but as its result. Inside, samples are equal citizens: values
/// on the host (item), results whose size depends on values (nonzero, masked_select), out= forms,
/// and writing a sample into a tensor that is not batched throw AutogradError; so do random
/// operators unless `randomness` says what they are to do.
/// Throws ShapeError when the inputs' batches differ in size, and when there is none.
std::vector<Tensor> vmap(const TensorsFunction& function, TensorList inputs,
                         const VmapOptions& options = {});

/// A function of tensors that calls another one for each sample of a batch; made by vmap(f).
template <class F>
class Vmapped {
 public:
  Vmapped(F function, VmapOptions options)
      : function_(std::move(function)), options_(std::move(options)) {}

  /// Returns what the function returns: a Tensor, or a vector, tuple, pair or array of them.
  template <std::same_as<Tensor>... T>
  auto operator()(const T&... inputs) const {
    using Result = detail::TensorResult<detail::ResultOf<F, T...>>;
    const std::array<Tensor, sizeof...(T)> list{inputs...};
    return Result::from(vmap(
        [&](TensorList samples) {
          return Result::list(detail::call_with_list<T...>(function_, samples));
        },
        TensorList(list), options_));
  }

 private:
  F function_;
  VmapOptions options_;
};

/// vmap(f)(x, y): f for each sample of x and y. Options as above.
template <class F>
Vmapped<F> vmap(F function, VmapOptions options = {}) {
  return {std::move(function), std::move(options)};
}

}  // namespace lockstep
