#pragma once

#include <functional>

#include "core/tensor/generator.h"
#include "core/tensor/tensor.h"

namespace lockstep::nn {

/// Writes a parameter's first values, all of them, to a tensor of its shape. Draws random numbers
/// from the default generator alone, with as many calls for any shape.
using FillValues = std::function<void(const Tensor& into)>;
FillValues fill_with(double value);
/// Uniform within +-bound.
FillValues fill_uniform(double bound);
/// Normal with mean 0.
FillValues fill_normal(double deviation);

/// Memory for a parameter, f32 on default_device(), filled by `fill`: at once, or, while this
/// thread defers them (DeferValuesGuard), by Module::fill_parameter later, with the same bits.
Tensor initial_values(IntList sizes, FillValues fill);

/// While one is alive, parameters that modules of this thread make with `initial_values` get no
/// memory: a model that is too large for one rank can be built, and its values written where they
/// are to be (dist/fsdp/fully_shard.h: ShardOptions::fill). Shapes, device and names are there;
/// reading an element throws DeviceError. Other tensors, and the random numbers that follow, are as
/// they would be without it. Guards nest.
class DeferValuesGuard {
 public:
  [[nodiscard]] DeferValuesGuard();
  ~DeferValuesGuard();
  DeferValuesGuard(const DeferValuesGuard&) = delete;
  DeferValuesGuard& operator=(const DeferValuesGuard&) = delete;
};
/// Whether this thread defers values.
bool defers_values();

/// The first values of a parameter without memory, to be written later.
struct DeferredValues {
  Tensor parameter;
  RandomKey random;  ///< state of the generator from which they are drawn
  FillValues fill;
};
/// Takes what this thread has to write to `parameter`; without a `fill` if it has memory. Called by
/// Module::register_parameter.
DeferredValues take_deferred_values(const Tensor& parameter);

}  // namespace lockstep::nn
