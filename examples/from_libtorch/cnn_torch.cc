// A convolutional classifier of 28x28 images.

#include <cstdio>

#include "fill_torch.h"

namespace F = torch::nn::functional;

struct Net : torch::nn::Module {
  Net() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1->forward(x), 2));
    x = torch::relu(torch::max_pool2d(conv2->forward(x), 2));
    return fc2->forward(torch::relu(fc1->forward(x.flatten(1))));
  }
  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(1, 10, 5)};
  torch::nn::Conv2d conv2{torch::nn::Conv2dOptions(10, 20, 5)};
  torch::nn::Linear fc1{320, 50}, fc2{50, 10};
};

int main() {
  const torch::Tensor images = numbers({32, 1, 28, 28}, 1, 0);
  const torch::Tensor labels = torch::arange(32) % 10;
  Net net;
  fill(net.parameters(), 0.1);
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.5));
  for (int step = 0; step < 8; ++step) {
    optimizer.zero_grad();
    const torch::Tensor loss = F::cross_entropy(net.forward(images), labels);
    loss.backward();
    optimizer.step();
    std::printf("%.6f\n", loss.item<double>());
  }
}
