// A custom operator with a kernel for the cpu and one for GPUs.

#include "rms_normalize.h"

#include <cmath>
#include <cstddef>

#include "core/plugin/plugin_wrapper.h"
#include "rms_normalize.fatbin.h"  // kImage, the compiled rms_normalize.cu

using namespace lockstep::plugin;

namespace {

void on_cpu(Result out, View self, double eps) {
  const int64_t count = self.numel();
  const auto* const from = self.data<float>();
  auto* const to = out.data<float>();
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(from[i]) * from[i];
  const double factor = 1 / std::sqrt(sum / static_cast<double>(count) + eps);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i] * factor);
}

// Only queues the kernels. `sums` may be freed when this returns: the allocator is stream-ordered,
// so its next user is queued after both kernels.
void on_gpu(Gpu gpu, Result out, View self, double eps) {
  namespace rms = rms_normalize;
  const int64_t count = self.numel();
  if (count == 0) return;
  const unsigned blocks = rms::blocks_for(count);
  const Grid grid{blocks, rms::kThreads};
  const auto* const from = self.data<float>();
  auto* const sums = gpu.scratch<float>(blocks);
  gpu.launch(kImage, "my_rms_square_sums", grid, rms::SquareSums{from, sums, count});
  gpu.launch(kImage, "my_rms_scale", grid,
             rms::Scaling{from, out.data<float>(), count, sums, blocks, static_cast<float>(eps)});
}

void rule(Rule& rule, View self, double) {
  if (self.dtype() < DType::kF16 || self.dtype() == DType::kF64) {
    throw Failure("expected float32, float16 or bfloat16. Cast self first.", LS_ERROR_DTYPE);
  }
  rule.result_like(self);
  rule.compute(DType::kF32);  // half types are cast
}

// With f = (mean(x^2) + eps)^-1/2 the result is y = f x, and dx = f (dy - y mean(y dy)). Uses
// public operators only, so it runs on every device that has them.
void derivative(Backward& backward) {
  const Tensor x = backward.saved(0);
  const Tensor y = backward.saved(1);
  const Tensor mean_square = call("mean", call("mul.Tensor", x, x));
  const Tensor factor =
      call("rsqrt", call("add.Scalar", mean_square, backward.argument<double>(1)));
  const Tensor along = call("mean", call("mul.Tensor", y, backward.gradient()));
  const Tensor rest = call("sub.Tensor", backward.gradient(), call("mul.Tensor", y, along));
  backward.set(0, call("mul.Tensor", rest, factor));
}

}  // namespace

LS_PLUGIN(library) {
  library
      .define("my::rms_normalize(Tensor self, float eps=1e-6) -> Tensor",
              "self / sqrt(mean(self^2) + eps), over all elements.")
      .rule(&rule)
      .kernel(&on_cpu)
      .kernel(&on_gpu, Strides::kContiguous, Backend::kCUDA)
      .derivative({"self", "output0"}, &derivative)
      .autocast(Autocast::kF32);
}
