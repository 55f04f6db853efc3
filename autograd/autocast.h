#pragma once

#include "core/base/scoped_value.h"
#include "core/dispatch/autocast_state.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// Sets this thread's autocast state; the destructor restores the previous one.
/// `AutocastStateGuard({})` turns autocast off everywhere, as backward does.
class AutocastStateGuard {
 public:
  [[nodiscard]] explicit AutocastStateGuard(const AutocastState& state) noexcept;
  ~AutocastStateGuard();
  AutocastStateGuard(const AutocastStateGuard&) = delete;
  AutocastStateGuard& operator=(const AutocastStateGuard&) = delete;

 private:
  ScopedValue<AutocastState> state_;
  bool was_included_;
};

/// While alive, operators of this thread cast the floating arguments that are on devices of one
/// type, by the class in their blocks (`.autocast(...)`, shown by `lockstep ops NAME`):
///
/// - lower precision (products, convolutions, attention): to `dtype`;
/// - f32 (losses, norms, sums, exponentials): up to f32;
/// - promote (cat, stack, ...): to the widest among them;
/// - none: not cast. In composites of this class the operators of the body decide.
///
/// f64 is never cast, nor are arguments of in-place and out= forms. The casts are recorded, so f32
/// weights get f32 gradients. A leaf in f32 that requires grad is cast once: the result is kept
/// until the outermost region of the thread ends, unless `cache_enabled` is false. Regions nest
/// like scopes; inside one with `enabled` false nothing is cast. Backward runs with autocast off.
/// See docs/mixed_precision.md.
class AutocastGuard {
 public:
  /// Throws DTypeError when `dtype` is neither bf16 nor f16.
  [[nodiscard]] explicit AutocastGuard(DeviceType type, bool enabled = true,
                                       DType dtype = DType::kBF16, bool cache_enabled = true);

 private:
  AutocastStateGuard state_;
};

/// Gives the leaf `weight` a cast that is computed elsewhere: a dense tensor of its sizes and
/// device in another dtype. While `cast` has memory, autocast takes its values instead of casting
/// `weight`, which need have no memory then; gradients reach `weight` as through a cast. Whoever
/// changes the values bumps the versions of both. An undefined tensor removes it. Throws ShapeError
/// or DTypeError for tensors that do not fit.
void set_prepared_cast(const Tensor& weight, const Tensor& cast);

/// Keeps the casts that regions make of the leaf `weight` until the weight changes: a value is cast
/// once, however many regions there are. It costs the cast's memory as long as the leaf lives, or
/// until `keep` is false. Values that are written through an address must be followed by
/// `bump_version()` of the storage. Not thread-safe.
void keep_cast(const Tensor& weight, bool keep = true);

/// Lets the casts that keep_cast keeps of these leaves lie side by side in memory, in this order,
/// where they are made one after the other: for operators that read them as one matrix
/// (core/ops/matmul/linear_of_parts.h). Not thread-safe.
void keep_casts_side_by_side(TensorList weights);

/// The cast that is kept of `weight` if it has the weight's values, else an undefined tensor.
/// Whoever changes the weight may write the new values here as well and then call
/// `renew_kept_cast`, so that the weight need not be cast again. Graphs that were recorded before
/// are invalid then, as with every change of a saved tensor.
Tensor kept_cast(const Tensor& weight);
/// Says that `kept_cast(weight)`, taken before the change, was given the weight's new values.
void renew_kept_cast(const Tensor& weight);

/// Clears this thread's cache of cast weights. The end of the outermost region does that too; a
/// weight that was changed in place is cast again without it.
void clear_autocast_cache() noexcept;
/// Whether the storage holds a cast that this thread's cache keeps.
bool is_cached_cast(const Storage& storage) noexcept;

}  // namespace lockstep
