// Which operators a perceptron of 256 inputs, 512 hidden features and 10 classes is made of.
// A linear layer is `t` (the weight's transpose, a view) and `addmm` (product and bias in one);
// there is no multiplication and no addition of its own.

#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;

int main() {
  nn::Mlp model({.inputs = 256, .hidden_widths = {512}, .classes = 10});
  const Tensor x = randn({8, 256});

  OpCounter counter;  // a dispatch mode: it sees what reaches kernels
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

  // Backward has three products: a weight's gradient for each layer, and the hidden features'; x
  // requires no grad.
  {
    const ModeGuard on(counter);
    loss.backward();
  }
  const OpCount products = counter.counts(Phase::kBackward).at("mm");
  std::printf("backward\n  mm     %lld calls %8lld flops\n", static_cast<long long>(products.calls),
              static_cast<long long>(products.flops));
}
