// A convolutional classifier of 28x28 images.

#include <cstdio>

#include "fill.h"

using namespace lockstep;

struct Net : nn::Module {
  Net() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  Tensor forward(Tensor x) const {
    x = relu(max_pool2d(conv1.forward(x), {2}));
    x = relu(max_pool2d(conv2.forward(x), {2}));
    return fc2.forward(relu(fc1.forward(x.flatten(1))));
  }
  nn::Conv2d conv1{1, 10, 5, nn::ConvOptions{}};
  nn::Conv2d conv2{10, 20, 5, nn::ConvOptions{}};
  nn::Linear fc1{320, 50}, fc2{50, 10};
};

int main() {
  const Tensor images = numbers({32, 1, 28, 28}, 1, 0);
  const Tensor labels = arange(32) % 10;
  Net net;
  fill(net.parameters(), 0.1);
  optim::SGD optimizer(net.parameters(), {.learning_rate = 0.05, .momentum = 0.5});
  for (int step = 0; step < 8; ++step) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy_loss(net.forward(images), labels);
    loss.backward();
    optimizer.step();
    std::printf("%.6f\n", loss.item<double>());
  }
}
