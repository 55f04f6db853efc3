#pragma once

#include <concepts>
#include <optional>
#include <vector>

#include "autograd/batched_tensor.h"
#include "autograd/tensor_functions.h"

namespace lockstep {

struct VmapOptions {
  /// For each input its batch dimension, which may be negative; nullopt: every sample gets the
  /// whole input. Empty: 0 for all.
  std::vector<std::optional<int64_t>> in_dims = {};
  /// For each output its batch dimension; nullopt for one that is the same for all samples. Empty:
  /// 0 for all.
  std::vector<std::optional<int64_t>> out_dims = {};
  Randomness randomness = Randomness::kError;
};

/// Calls `function`, which is written for one sample, once for a whole batch. The result equals
/// that of calling it for each sample and stacking the results. Inside, a batched tensor has the
/// sizes of one sample. Operators with a batching rule compute the batch in one call; the others
/// run once per sample (see operators_run_per_sample in core/ops/batching.h).
///
/// May be nested, and composes with grad (autograd/transforms.h). Autograd records the operators on
/// the whole batch, so a backward outside works as usual; inside, call grad instead of backward. A
/// batched tensor must not leave the function except as its result. Inside, operations that cannot
/// differ between samples throw AutogradError: values on the host (item), results whose size
/// depends on values (nonzero, masked_select), out= forms, and writing a sample into a tensor that
/// is not batched; so do random operators unless `randomness` allows them. Throws ShapeError when
/// the inputs' batch sizes differ, and when no input is batched.
std::vector<Tensor> vmap(const TensorsFunction& function, TensorList inputs,
                         const VmapOptions& options = {});

/// Function object returned by vmap(f): applies f to each sample of a batch.
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

/// vmap(f)(x, y): applies f to each sample of x and y. Options are those of `vmap` above.
template <class F>
Vmapped<F> vmap(F function, VmapOptions options = {}) {
  return {std::move(function), std::move(options)};
}

}  // namespace lockstep
