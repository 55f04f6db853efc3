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

/// The same formula as a composite operator: its gradient goes through the norm as well.
LS_OP(clip_norm, Tensor(const Tensor&, double),
      "tour::clip_norm(Tensor self, float largest) -> Tensor")
    .doc("self, scaled down to the norm `largest` when its norm is larger.")
    .composite([](const Tensor& self, double largest) {
      return self * clamp_max(reciprocal(linalg_vector_norm(self)) * largest, 1.0);
    });

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
  const Tensor z = op_clip_norm(x, 1.0);
  show("the operator", z);
  show("gradient through the norm", grad({(z * weight).sum()}, {x})[0]);
  show("called by its name", call_op("tour::clip_norm", {x, 1.0}));
}
