// Q-learning of a walk along ten places: right at the last one earns 1 and starts again.

#include <cstdio>

#include "fill_torch.h"

namespace nn = torch::nn;
using torch::Tensor;

struct QNet : nn::Module {
  QNet() {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  Tensor forward(const Tensor& places) {
    return fc2->forward(torch::relu(fc1->forward(torch::one_hot(places, 10).to(torch::kFloat32))));
  }
  nn::Linear fc1{10, 32}, fc2{32, 2};
};

int main() {
  QNet online, target;
  fill(online.parameters(), 0.3);
  torch::optim::RMSprop optimizer(online.parameters(), torch::optim::RMSpropOptions(1e-3));
  for (int step = 0; step < 40; ++step) {
    if (step % 10 == 0) {
      const torch::NoGradGuard no_grad;
      for (auto& each : target.named_parameters()) {
        each.value().copy_(online.named_parameters()[each.key()]);
      }
    }
    const Tensor places = (torch::arange(32) * 3 + step) % 10;
    const Tensor actions = (torch::arange(32) * 5 + step) % 7 % 2;
    const Tensor arrived = (places + actions * 2 - 1).clamp(0, 10) % 10;
    const Tensor rewards = ((places == 9) & (actions == 1)).to(torch::kFloat32);
    Tensor wanted;
    {
      const torch::NoGradGuard no_grad;
      wanted = rewards + 0.9 * target.forward(arrived).amax(1);
    }
    const Tensor chosen = online.forward(places).gather(1, actions.unsqueeze(1)).squeeze(1);
    const Tensor loss = torch::smooth_l1_loss(chosen, wanted);
    optimizer.zero_grad();
    loss.backward();
    nn::utils::clip_grad_norm_(online.parameters(), 1.0);
    optimizer.step();
    if (step % 5 == 4) std::printf("%.6f\n", loss.item<double>());
  }
}
