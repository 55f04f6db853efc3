// A custom operator with all the parts of a built-in one.

#include <algorithm>
#include <cstdint>

#include "core/plugin/plugin_wrapper.h"

using namespace lockstep::plugin;

namespace {

template <class T>
void loop(const Result& out, const View& self, double scale, double max) {
  const T* from = self.data<T>();
  T* to = out.data<T>();
  parallel_for(self.numel(), 4096, [=](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      to[i] = std::min(from[i] * static_cast<T>(scale), static_cast<T>(max));
    }
  });
}

// Takes results first, then the arguments of the schema. Memory is allocated by Lockstep, and
// row-major because the kernel is registered without other strides.
void kernel(Result out, View self, double scale, double max) {
  if (self.dtype() == DType::kF64) {
    loop<double>(out, self, scale, max);
  } else {
    loop<float>(out, self, scale, max);
  }
}

// Determines the result's shape and dtype, and throws for invalid arguments. Also runs on meta.
void rule(Rule& rule, View self, double, double) {
  if (self.dtype() < DType::kF16) {
    throw Failure("expected a floating dtype. Cast self first.", LS_ERROR_DTYPE);
  }
  rule.result_like(self);
  if (self.dtype() != DType::kF64) rule.compute(DType::kF32);  // half types are cast
}

// Uses public operators only, so that it can be differentiated again. The gradient is zero where
// the result was clamped.
void derivative(Backward& backward) {
  const Tensor inside = call("lt.Scalar", backward.saved(0), backward.argument<double>(2));
  const Tensor scaled = call("mul.Scalar", backward.gradient(), backward.argument<double>(1));
  backward.set(0, call("mul.Tensor", scaled, inside));
}

// The operator is elementwise, so a batch is just a larger tensor.
Tensor batched(const Batch&, Tensor self, double scale, double max) {
  return call("my::scale_clamp", self, scale, max);
}

}  // namespace

LS_PLUGIN(library) {
  library
      .define("my::scale_clamp(Tensor self, float scale=1, *, float max=6) -> Tensor",
              "min(scale * self, max), element by element.")
      .rule(&rule)
      .kernel(&kernel)
      .derivative({"output0"}, &derivative)
      .batching(&batched)
      .autocast(Autocast::kPromote)
      .in_place()
      .out();
}
