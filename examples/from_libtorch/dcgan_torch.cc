// A generator of 16x16 images and the discriminator that it learns to deceive.

#include <cstdio>

#include "fill_torch.h"

namespace nn = torch::nn;
using torch::Tensor;

int main() {
  nn::Sequential generator(
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 16, 4).bias(false)), nn::BatchNorm2d(16),
      nn::ReLU(),
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(16, 8, 4).stride(2).padding(1).bias(false)),
      nn::BatchNorm2d(8), nn::ReLU(),
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 1, 4).stride(2).padding(1)), nn::Tanh());
  nn::Sequential discriminator(nn::Conv2d(nn::Conv2dOptions(1, 8, 4).stride(2).padding(1)),
                               nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
                               nn::Conv2d(nn::Conv2dOptions(8, 16, 4).stride(2).padding(1)),
                               nn::BatchNorm2d(16),
                               nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
                               nn::Conv2d(nn::Conv2dOptions(16, 1, 4)), nn::Flatten());
  fill(generator->parameters(), 0.5);
  fill(discriminator->parameters(), 0.3);
  torch::optim::Adam generate(generator->parameters(),
                              torch::optim::AdamOptions(2e-4).betas({0.5, 0.999}));
  torch::optim::Adam discriminate(discriminator->parameters(),
                                  torch::optim::AdamOptions(2e-4).betas({0.5, 0.999}));
  const Tensor real = numbers({8, 1, 16, 16}, 1, 0);
  for (int step = 0; step < 8; ++step) {
    const Tensor fake = generator->forward(numbers({8, 8, 1, 1}, 1, step));
    discriminate.zero_grad();
    const Tensor of_real = discriminator->forward(real);
    const Tensor of_fake = discriminator->forward(fake.detach());
    const Tensor loss =
        torch::binary_cross_entropy_with_logits(of_real, torch::ones_like(of_real)) +
        torch::binary_cross_entropy_with_logits(of_fake, torch::zeros_like(of_fake));
    loss.backward();
    discriminate.step();
    generate.zero_grad();
    const Tensor judged = discriminator->forward(fake);
    const Tensor deceit = torch::binary_cross_entropy_with_logits(judged, torch::ones_like(judged));
    deceit.backward();
    generate.step();
    std::printf("%.6f %.6f\n", loss.item<double>(), deceit.item<double>());
  }
}
