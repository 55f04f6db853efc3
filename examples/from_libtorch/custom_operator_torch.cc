// An operator of one's own, with a kernel and a derivative: softsign, x / (1 + |x|).

#include <torch/library.h>

#include <cmath>
#include <cstdio>

#include "fill_torch.h"

using torch::Tensor;

Tensor soft(const Tensor& self) {
  const Tensor from = self.contiguous();
  const Tensor result = torch::empty_like(from);
  const float* x = from.data_ptr<float>();
  float* to = result.data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); ++i) to[i] = x[i] / (1 + std::abs(x[i]));
  return result;
}

Tensor call_soft(const Tensor& self) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("mine::soft", "")
                             .typed<Tensor(const Tensor&)>();
  return op.call(self);
}

struct Soft : torch::autograd::Function<Soft> {
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& self) {
    const at::AutoDispatchBelowADInplaceOrView below;
    ctx->save_for_backward({self});
    return call_soft(self);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    return {grads[0] / (ctx->get_saved_variables()[0].abs() + 1).square()};
  }
};

TORCH_LIBRARY(mine, library) { library.def("soft(Tensor self) -> Tensor"); }
TORCH_LIBRARY_IMPL(mine, CPU, library) { library.impl("soft", soft); }
TORCH_LIBRARY_IMPL(mine, Autograd, library) {
  library.impl("soft", [](const Tensor& self) { return Soft::apply(self); });
}

int main() {
  const Tensor x = numbers({16, 8}, 1, 0);
  const Tensor y = numbers({16, 1}, 1, 1);
  torch::nn::Linear up(8, 32), down(32, 1);
  fill(up->parameters(), 0.5);
  fill(down->parameters(), 0.5);
  torch::optim::SGD first(up->parameters(), torch::optim::SGDOptions(0.1));
  torch::optim::SGD second(down->parameters(), torch::optim::SGDOptions(0.1));
  for (int step = 0; step < 8; ++step) {
    first.zero_grad();
    second.zero_grad();
    const Tensor loss = torch::mse_loss(down->forward(call_soft(up->forward(x))), y);
    loss.backward();
    first.step();
    second.step();
    std::printf("%.6f\n", loss.item<double>());
  }
}
