// A generator of 16x16 images and the discriminator that it learns to deceive.

#include <cstdio>

#include "fill.h"

using namespace lockstep;

int main() {
  nn::Sequential generator(
      nn::ConvTranspose2d(8, 16, 4, {.bias = false}), nn::BatchNorm2d(16), nn::ReLU(),
      nn::ConvTranspose2d(16, 8, 4, {.stride = 2, .padding = 1, .bias = false}), nn::BatchNorm2d(8),
      nn::ReLU(), nn::ConvTranspose2d(8, 1, 4, {.stride = 2, .padding = 1}), nn::Tanh());
  nn::Sequential discriminator(
      nn::Conv2d(1, 8, 4, nn::ConvOptions{.stride = 2, .padding = 1}), nn::LeakyReLU(0.2),
      nn::Conv2d(8, 16, 4, nn::ConvOptions{.stride = 2, .padding = 1}), nn::BatchNorm2d(16),
      nn::LeakyReLU(0.2), nn::Conv2d(16, 1, 4, nn::ConvOptions{}), nn::Flatten());
  fill(generator.parameters(), 0.5);
  fill(discriminator.parameters(), 0.3);
  optim::Adam generate(generator.parameters(), {.learning_rate = 2e-4, .beta1 = 0.5});
  optim::Adam discriminate(discriminator.parameters(), {.learning_rate = 2e-4, .beta1 = 0.5});
  const Tensor real = numbers({8, 1, 16, 16}, 1, 0);
  for (int step = 0; step < 8; ++step) {
    const Tensor fake = generator.forward(numbers({8, 8, 1, 1}, 1, step));
    discriminate.zero_grad();
    const Tensor of_real = discriminator.forward(real);
    const Tensor of_fake = discriminator.forward(fake.detach());
    const Tensor loss = binary_cross_entropy_with_logits(of_real, ones_like(of_real)) +
                        binary_cross_entropy_with_logits(of_fake, zeros_like(of_fake));
    loss.backward();
    discriminate.step();
    generate.zero_grad();
    const Tensor judged = discriminator.forward(fake);
    const Tensor deceit = binary_cross_entropy_with_logits(judged, ones_like(judged));
    deceit.backward();
    generate.step();
    std::printf("%.6f %.6f\n", loss.item<double>(), deceit.item<double>());
  }
}
