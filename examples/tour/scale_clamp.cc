// min(scale x, max) in one pass over memory, as a Function with its own derivative.

#include <lockstep/lockstep.h>

#include <algorithm>
#include <cstdio>

using namespace lockstep;

namespace {

struct ScaleClamp : Function<ScaleClamp> {
  // Runs without recording, so it may compute in any way, here with a loop.
  static Tensor forward(FunctionContext& ctx, const Tensor& x, double scale, double max) {
    const Tensor input = x.contiguous();
    const Tensor result = empty_like(input);
    const double* from = input.data<double>();
    double* to = result.data<double>();
    parallel_for(0, x.numel(), 4096, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) to[i] = std::min(from[i] * scale, max);
    });
    ctx.save_for_backward({result});
    ctx.set_data(std::pair(scale, max));
    return result;
  }

  // Written with operators, so it can be differentiated again.
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    const auto [scale, max] = ctx.data<std::pair<double, double>>();
    return {grad * scale * lt(ctx.saved(0), max)};  // zero where the result was clamped
  }
};

void show(const char* name, const Tensor& x) {
  std::printf("%-6s", name);
  for (int64_t i = 0; i < x.numel(); ++i) std::printf(" %5.2f", x.select(0, i).item<double>());
  std::printf("\n");
}

}  // namespace

int main() {
  const Tensor x = arange(-1.0, 1.5, 0.5, DType::kF64).set_requires_grad();
  const Tensor y = ScaleClamp::apply(x, 2.0, 1.5);
  show("x", x);
  show("y", y);
  y.sum().backward();
  show("x.grad", x.grad());
  std::printf("recorded as %s\n", y.grad_fn()->name().c_str());

  const auto function = [](TensorList inputs) { return ScaleClamp::apply(inputs[0], 2.0, 1.5); };
  std::printf("gradcheck %s, gradgradcheck %s\n", gradcheck(function, {x}) ? "passed" : "failed",
              gradgradcheck(function, {x}) ? "passed" : "failed");
}
