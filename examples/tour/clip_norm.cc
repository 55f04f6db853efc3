// A gradient that is not the derivative: x is scaled down to a maximum norm, and backward treats
// the scale as a constant, although it depends on x. A Function may define any backward.

#include <lockstep/lockstep.h>

#include <algorithm>
#include <cstdio>

using namespace lockstep;

namespace {

struct ClipNorm : Function<ClipNorm> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, double largest) {
    const double scale = std::min(1.0, largest / linalg_vector_norm(x).item<double>());
    ctx.set_data(scale);
    return x * scale;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    return {grad * ctx.data<double>()};
  }
};

/// The same formula with operators: its gradient goes through the norm as well.
Tensor clip_norm(const Tensor& x, double largest) {
  return x * clamp_max(reciprocal(linalg_vector_norm(x)) * largest, 1.0);
}

void show(const char* name, const Tensor& x) {
  std::printf("%-28s", name);
  for (int64_t i = 0; i < x.numel(); ++i) std::printf(" %6.3f", x.select(0, i).item<double>());
  std::printf("\n");
}

}  // namespace

int main() {
  const Tensor x = stack({full({}, 3.0), full({}, 4.0)});  // its norm is 5
  x.set_requires_grad();
  const Tensor weight = stack({full({}, 1.0), full({}, 0.0)});

  const Tensor y = ClipNorm::apply(x, 1.0);
  show("clipped to norm 1", y);
  show("gradient, constant scale", grad({(y * weight).sum()}, {x})[0]);
  const Tensor z = clip_norm(x, 1.0);
  show("the same with operators", z);
  show("gradient through the norm", grad({(z * weight).sum()}, {x})[0]);
}
