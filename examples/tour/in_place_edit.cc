// exp saves its result, because its derivative is its result. Changing that tensor afterwards would
// make the gradient wrong; the storage's version counter lets backward detect it.

#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;

int main() {
  const Tensor x = ones({3}).set_requires_grad();

  const Tensor y = x.exp();
  std::printf("version of y: %u\n", y.version());
  y.mul_(full({}, 2));
  std::printf("version of y after mul_: %u\n", y.version());
  try {
    y.sum().backward();
  } catch (const AutogradError& error) {
    std::printf("%s\n", error.what());
  }

  // With a new tensor for the product, exp's result does not change.
  const Tensor z = x.exp() * 2;
  z.sum().backward();
  std::printf("out of place, x.grad is %.4f\n", x.grad().select(0, 0).item<double>());
}
