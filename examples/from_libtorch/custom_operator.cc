// An operator of one's own, with a kernel and a derivative: softsign, x / (1 + |x|).

#include <cmath>
#include <cstdio>

#include "fill.h"

using namespace lockstep;

LS_OP(soft, Tensor(const Tensor&), "mine::soft(Tensor self) -> Tensor")
    .doc("self / (1 + |self|), element by element.")
    .structured([](const Tensor& self) { return one(self.sizes(), DType::kF32); })
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad / square(abs(ctx.saved(0)) + 1); });
    });

void soft(const Out& out, const In& self) {
  const float* x = self.data<float>();
  for (int64_t i = 0; i < out.numel; ++i) out.data<float>()[i] = x[i] / (1 + std::abs(x[i]));
}
LS_KERNEL(CPU, "mine::soft", soft, Strides::kContiguous);

int main() {
  const Tensor x = numbers({16, 8}, 1, 0);
  const Tensor y = numbers({16, 1}, 1, 1);
  nn::Linear up(8, 32), down(32, 1);
  fill(up.parameters(), 0.5);
  fill(down.parameters(), 0.5);
  optim::SGD first(up.parameters(), {.learning_rate = 0.1});
  optim::SGD second(down.parameters(), {.learning_rate = 0.1});
  for (int step = 0; step < 8; ++step) {
    first.zero_grad();
    second.zero_grad();
    const Tensor loss = mse_loss(down.forward(op_soft(up.forward(x))), y);
    loss.backward();
    first.step();
    second.step();
    std::printf("%.6f\n", loss.item<double>());
  }
}
