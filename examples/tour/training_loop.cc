// A training loop: which of four numbers is the largest? Optimizer, clipping and schedule.

#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;

int main() {
  manual_seed(1);
  nn::Mlp model({.inputs = 4, .hidden_widths = {32}, .classes = 4});
  optim::AdamW optimizer(model.named_parameters(), {.learning_rate = 1e-2});
  optim::OneCycleLR schedule(optimizer, {.max_learning_rate = {2e-2}, .total_steps = 300});

  for (int step = 0; step < 300; ++step) {
    const Tensor samples = randn({64, 4});
    optimizer.zero_grad();
    const Tensor loss = cross_entropy_loss(model.forward(samples), samples.argmax(1));
    loss.backward();
    optim::clip_grad_norm_(model.named_parameters(), 1.0);
    optimizer.step();
    schedule.step();
  }

  const Tensor samples = randn({1000, 4});
  const Tensor right = eq(model.forward(samples).argmax(1), samples.argmax(1));
  const double accuracy = right.to(DType::kF64).mean().item<double>();
  std::printf("more than 95 of 100 right: %s\n", accuracy > 0.95 ? "yes" : "no");
  std::printf("learning rate at the end below 1e-5: %s\n",
              optimizer.learning_rate() < 1e-5 ? "yes" : "no");
}
