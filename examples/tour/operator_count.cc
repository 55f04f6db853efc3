// The operators of a perceptron with 256 inputs, 512 hidden features and 10 classes. A linear layer
// is `t` (the weight's transpose, a view) and `addmm` (product and bias in one call).

#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;

int main() {
  nn::Mlp model({.inputs = 256, .hidden_widths = {512}, .classes = 10});
  const Tensor x = randn({8, 256});

  OpCounter counter;  // a dispatch mode: it sees the calls that reach kernels
  Tensor loss;
  {
    const ModeGuard on(counter);
    loss = model.forward(x).sum();
  }
  std::printf("forward\n");
  for (const auto& [op, count] : counter.counts(Phase::kForward)) {
    std::printf("  %-6s %lld calls %8lld flops\n", op.c_str(), static_cast<long long>(count.calls),
                static_cast<long long>(count.flops));
  }

  // Backward has three products: the gradients of both weights, a wide one with its
  // bias, and the gradient of the hidden features; x does not require grad.
  {
    const ModeGuard on(counter);
    loss.backward();
  }
  std::printf("backward\n");
  for (const auto& [op, count] : counter.counts(Phase::kBackward)) {
    if (count.flops == 0) continue;
    std::printf("  %-26s %lld calls %8lld flops\n", op.c_str(), static_cast<long long>(count.calls),
                static_cast<long long>(count.flops));
  }
}
