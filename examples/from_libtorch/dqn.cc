// Q-learning of a walk along ten places: right at the last one earns 1 and starts again.

#include <cstdio>

#include "fill.h"

using namespace lockstep;

struct QNet : nn::Module {
  QNet() {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  Tensor forward(const Tensor& places) const {
    return fc2.forward(relu(fc1.forward(one_hot(places, 10).to(DType::kF32))));
  }
  nn::Linear fc1{10, 32}, fc2{32, 2};
};

int main() {
  QNet online, target;
  fill(online.parameters(), 0.3);
  optim::RMSprop optimizer(online.parameters(), {.learning_rate = 1e-3});
  for (int step = 0; step < 40; ++step) {
    if (step % 10 == 0) target.load_state_dict(online.state_dict());
    const Tensor places = (arange(32) * 3 + step) % 10;
    const Tensor actions = (arange(32) * 5 + step) % 7 % 2;
    const Tensor arrived = clamp(places + actions * 2 - 1, 0, 10) % 10;
    const Tensor rewards = ((places == 9) & (actions == 1)).to(DType::kF32);
    Tensor wanted;
    {
      const NoGradGuard no_grad;
      wanted = rewards + 0.9 * amax(target.forward(arrived), {1});
    }
    const Tensor chosen = gather(online.forward(places), 1, actions.unsqueeze(1)).squeeze(1);
    const Tensor loss = smooth_l1_loss(chosen, wanted);
    optimizer.zero_grad();
    loss.backward();
    optim::clip_grad_norm_(online.parameters(), 1.0);
    optimizer.step();
    if (step % 5 == 4) std::printf("%.6f\n", loss.item<double>());
  }
}
