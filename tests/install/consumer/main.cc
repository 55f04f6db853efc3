// A user's program: trains a small model with the installed library and defines its own operator.

#include <lockstep/lockstep.h>

#include <cmath>
#include <cstdio>

using namespace lockstep;

namespace {

// consumer::cube: an elementwise operator with a kernel and a derivative.
Outputs cube_rule(const Tensor& self) {
  Outputs outputs = one(self.sizes(), DType::kF32);
  outputs.compute = DType::kF32;
  return outputs;
}

LS_OP(cube, Tensor(const Tensor&), "consumer::cube(Tensor self) -> Tensor")
    .doc("self^3, element by element.")
    .structured(cube_rule)
    .in_place()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& self = ctx.saved(0);
      return ctx.gradients([&] { return grad.mul(self.mul(self)).mul(full({}, 3.0)); });
    });

void cube(const Out& out, const In& self) {
  for (int64_t i = 0; i < out.numel; ++i) {
    const float x = self.data<float>()[i];
    out.data<float>()[i] = x * x * x;
  }
}

LS_KERNEL(CPU, "consumer::cube", cube, Strides::kContiguous);

bool close(float a, float b) { return std::abs(a - b) <= 1e-5f * std::abs(b); }

bool own_operator_works() {
  const Tensor x = tensor_from<float>({1, -2, 3}, {3});
  x.set_requires_grad();
  const Tensor y = op_cube(x);
  y.sum().backward();
  return close(y.select(0, 2).item<float>(), 27) &&
         close(x.grad().select(0, 1).item<float>(), 12) &&
         &dispatcher().find("consumer::cube_").root() == &dispatcher().find("consumer::cube");
}

bool training_lowers_the_loss() {
  manual_seed(1);
  nn::Mlp model({.inputs = 8, .hidden_widths = {16}, .classes = 4});
  Tensor samples = empty({32, 8});
  normal_(samples);
  const Tensor labels = samples.slice(1, 0, 4).argmax(1);
  float first = 0;
  float last = 0;
  for (int step = 0; step < 60; ++step) {
    const Tensor loss = nn::sum_of_losses(model, samples, labels);
    loss.backward();
    last = loss.item<float>();
    if (step == 0) first = last;
    const NoGradGuard no_grad;
    for (const Tensor& parameter : model.parameters()) {
      parameter.sub_(parameter.grad(), 0.01);
      parameter.set_grad({});
    }
  }
  std::printf("loss %.3f -> %.3f\n", static_cast<double>(first), static_cast<double>(last));
  return last < first / 2;
}

}  // namespace

int main() {
  const bool good = own_operator_works() && training_lowers_the_loss();
  std::puts(good ? "good" : "wrong");
  return good ? 0 : 1;
}
