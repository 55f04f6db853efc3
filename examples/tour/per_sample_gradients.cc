// One gradient per sample of a batch: vmap(grad(f)). f is written for one sample; vmap runs it for
// all samples at once, with batched versions of the same operators.

#include <lockstep/lockstep.h>

#include <algorithm>
#include <cstdio>

using namespace lockstep;

namespace {

/// Squared error of a linear layer on one sample: x [3], y [2], weight [2, 3].
Tensor loss(const Tensor& weight, const Tensor& x, const Tensor& y) {
  const Tensor error = mv(weight, x) - y;
  return (error * error).sum();
}

}  // namespace

int main() {
  manual_seed(1);
  const Tensor weight = randn({2, 3});
  const Tensor xs = randn({4, 3});
  const Tensor ys = randn({4, 2});

  // The weight is the same for all samples, xs and ys hold one sample in each row.
  const auto per_sample = vmap(grad(loss), {.in_dims = {std::nullopt, 0, 0}});
  const Tensor gradients = per_sample(weight, xs, ys);
  std::printf("gradients %s\n", gradients.shape().c_str());

  double largest = 0;
  for (int64_t i = 0; i < 4; ++i) {
    const Tensor one = grad(loss)(weight, xs.select(0, i), ys.select(0, i));
    largest = std::max(largest, max(abs(gradients.select(0, i) - one)).item<double>());
  }
  std::printf("as a loop over the samples: %s\n", largest < 1e-6 ? "yes" : "no");

  const Tensor norms = linalg_vector_norm(gradients, 2, {1, 2});
  std::printf("norms %s\n", norms.shape().c_str());
}
