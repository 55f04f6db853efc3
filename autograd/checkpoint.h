#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/saved_tensor_hooks.h"
#include "core/dispatch/mode.h"
#include "core/tensor/tensor.h"

namespace lockstep {

struct CheckpointOptions {
  bool early_stop = true;          ///< recomputation stops after the last tensor that is needed
  bool preserve_rng_state = true;  ///< recomputation draws the same random numbers as forward
  /// Check that recomputation saves as many tensors as forward, with the same shapes, dtypes and
  /// devices.
  bool determinism_check = true;
  /// Keep the results of products, convolutions and attention (operators that declare
  /// floating-point operations) besides the inputs: recomputation takes them and computes the rest
  /// again, which is mostly cheaper than keeping it: norms, activations, dropout, sums. They must
  /// not be changed in place.
  bool keep_products = false;
  /// With keep_products: compute the gelu that linear_gelu gives (core/ops/matmul/fused_linear.h)
  /// again as well, from its argument. For devices whose kernels compute it from what they store,
  /// such as the cpu; elsewhere it has other bits.
  bool recompute_gelu = false;
};

/// Activation checkpointing: calls `function(inputs...)` and keeps only the input tensors for
/// backward; the intermediate tensors that backward needs are recomputed when the first of them is
/// requested, and freed as they are used (Chen et al. 2016). Costs one more forward pass of the
/// function, or what is cheap of it (`keep_products`); gradients have the same bits as without.
///
/// Inputs are tensors, lists of tensors and other copyable values. These values and `function` are
/// copied; objects that `function` refers to must live until backward. It must compute the same
/// when it is called again: recomputation runs under the grad mode, autocast state, default device
/// and random state of forward, but modules that count calls must check `is_recomputing()`. Calls
/// nest, and may run a backward inside. While grad mode is off, this is an ordinary call.
///
/// Backward throws AutogradError if recomputation saved other tensors than forward or an input was
/// changed in place since, and whatever the function throws when it is called again.
template <class F, class... A>
requires(std::is_invocable_v<F&, const A&...>) auto checkpoint(F function, const A&... inputs);
template <class F, class... A>
auto checkpoint(const CheckpointOptions& options, F function, const A&... inputs);

/// Whether this thread is recomputing a forward pass. State that counts forward passes, such as
/// running statistics, must not be updated meanwhile.
bool is_recomputing() noexcept;

namespace detail {

class CheckpointFrame;

/// Scope of the forward pass of one checkpoint: replaces saved tensors while alive.
class CheckpointedForward {
 public:
  CheckpointedForward(const CheckpointOptions& options, TensorList inputs,
                      std::function<void(TensorList inputs)> again);
  ~CheckpointedForward();
  CheckpointedForward(const CheckpointedForward&) = delete;
  CheckpointedForward& operator=(const CheckpointedForward&) = delete;

 private:
  std::shared_ptr<CheckpointFrame> frame_;
  std::unique_ptr<DispatchMode> keeping_;  ///< null unless products are kept
  SavedTensorHooksGuard hooks_;
  std::optional<ModeGuard> keeping_guard_;
};

/// Keeps one input from forward to recomputation, except for its tensors, which the frame keeps.
template <class T>
struct KeptInput {
  explicit KeptInput(const T& input) : value(input) {}
  static void add(std::vector<Tensor>&, const T&) {}
  const T& restore(TensorList, size_t&) const { return value; }
  T value;
};
template <>
struct KeptInput<Tensor> {
  explicit KeptInput(const Tensor&) {}
  static void add(std::vector<Tensor>& tensors, const Tensor& input) { tensors.push_back(input); }
  const Tensor& restore(TensorList tensors, size_t& at) const { return tensors[at++]; }
};
template <class T>
requires(std::is_convertible_v<const T&, std::span<const Tensor>>) struct KeptInput<T> {
  explicit KeptInput(const T& input) : count(std::span<const Tensor>(input).size()) {}
  static void add(std::vector<Tensor>& tensors, const T& input) {
    for (const Tensor& tensor : std::span<const Tensor>(input)) tensors.push_back(tensor);
  }
  std::vector<Tensor> restore(TensorList tensors, size_t& at) const {
    const std::span<const Tensor> mine = tensors.subspan(at, count);
    at += count;
    return {mine.begin(), mine.end()};
  }
  size_t count;
};
template <>
struct KeptInput<OptionalTensor>;  // borrowed: pass a Tensor, which may be undefined

}  // namespace detail

template <class F, class... A>
auto checkpoint(const CheckpointOptions& options, F function, const A&... inputs) {
  if (!is_grad_enabled()) return function(inputs...);
  std::vector<Tensor> tensors;
  (detail::KeptInput<A>::add(tensors, inputs), ...);
  auto again = [function,
                kept = std::tuple(detail::KeptInput<A>(inputs)...)](TensorList fresh) mutable {
    size_t at = 0;
    std::apply(
        [&](const auto&... each) {
          // Braces guarantee evaluation in order, which `at` depends on.
          std::tuple<decltype(each.restore(fresh, at))...> restored{each.restore(fresh, at)...};
          (void)std::apply(function, restored);
        },
        kept);
  };
  const detail::CheckpointedForward forward(options, tensors, std::move(again));
  return function(inputs...);
}

template <class F, class... A>
requires(std::is_invocable_v<F&, const A&...>) auto checkpoint(F function, const A&... inputs) {
  return checkpoint(CheckpointOptions(), std::move(function), inputs...);
}

}  // namespace lockstep
