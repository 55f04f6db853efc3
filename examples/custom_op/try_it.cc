// Loads the plug-in, checks its operator against its declaration (opcheck), and trains through it.

#include <lockstep/lockstep.h>

#include <cmath>
#include <cstdio>

using namespace lockstep;

int main() {
  try {
    const Plugin plugin = load_library(CUSTOM_OP);

    manual_seed(1);
    const Tensor x = randn({4, 3});
    const OpSample sample{{x, 2.0}, {{"max", 1.5}}};
    const std::vector<std::string> problems = opcheck("my::scale_clamp", {&sample, 1});
    for (const std::string& problem : problems) std::printf("%s\n", problem.c_str());
    if (!problems.empty()) return 1;

    // Gradient descent moves x until the result is 1 everywhere.
    const Tensor weight = randn({8}).set_requires_grad();
    double loss = 0;
    for (int step = 0; step < 200; ++step) {
      const Tensor y = call_op("my::scale_clamp", {weight, 0.5});
      const Tensor error = y - 1;
      const Tensor total = (error * error).sum();
      loss = total.item<float>();
      weight.set_grad({});
      total.backward();
      const NoGradGuard guard;
      weight.sub_(weight.grad());
    }
    std::printf("loss %.2g\n", loss);
    return loss < 1e-6 ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", error.kind(), error.what());
    return 1;
  }
}
