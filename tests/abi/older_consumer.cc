// A user's program, compiled with the headers of the last release and linked with today's library
// (docs/install.md, "The ABI"). It uses what differs from call to call when an ABI breaks: members
// and tables of virtual functions of classes it derives from, exceptions, thread-locals, a Function
// and an operator of its own.

#include <cmath>
#include <cstdio>
#include <memory>

#include "autograd/autograd.h"
#include "autograd/function.h"
#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/loss/loss.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/generator.h"
#include "nn/layers.h"
#include "optim/sgd.h"

using namespace lockstep;

namespace {

struct Twice : Function<Twice> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, double factor) {
    ctx.set_data(factor);
    return x * factor;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    return {grad * ctx.data<double>()};
  }
};

Outputs cube_rule(const Tensor& self) { return one(self.sizes(), DType::kF32); }

LS_OP(cube, Tensor(const Tensor&), "older::cube(Tensor self) -> Tensor")
    .doc("self^3, element by element.")
    .structured(cube_rule);

void cube(const Out& out, const In& self) {
  for (int64_t i = 0; i < out.numel; ++i) {
    const float x = self.data<float>()[i];
    out.data<float>()[i] = x * x * x;
  }
}

LS_KERNEL(CPU, "older::cube", cube, Strides::kContiguous);

/// A module and an optimizer of the program's own, which the library calls.
class Net : public nn::Module {
 public:
  Net() {
    register_module("first", first_);
    register_module("second", second_);
  }
  Tensor forward(const Tensor& x) const { return second_.forward(relu(first_.forward(x))); }

 private:
  nn::Linear first_{4, 16};
  nn::Linear second_{16, 4};
};

bool training_lowers_the_loss() {
  manual_seed(1);
  Net net;
  const std::unique_ptr<optim::Optimizer> optimizer =
      std::make_unique<optim::SGD>(net.named_parameters(), optim::SGDOptions{.learning_rate = 0.5});
  double first = 0;
  double last = 0;
  for (int step = 0; step < 40; ++step) {
    const Tensor samples = randn({64, 4});
    optimizer->zero_grad();
    const Tensor loss = cross_entropy_loss(net.forward(samples), samples.argmax(1));
    loss.backward();
    optimizer->step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  return net.state_dict().size() == 4 && net.named_parameters()[0].name == "first.weight" &&
         last < first / 2;
}

bool errors_are_caught_by_type() {
  try {
    const Tensor product = mm(ones({2, 3}), ones({2, 3}));
    return !product.defined();
  } catch (const ShapeError& error) {
    return error.kind() == std::string("ShapeError");
  }
  return false;
}

bool guards_reach_the_library() {
  const Tensor x = ones({3}).set_requires_grad();
  const NoGradGuard no_grad;
  return !(x * 2.0).requires_grad();
}

bool own_operators_run() {
  const Tensor x = full({2}, 3.0).set_requires_grad();
  Twice::apply(x, 2.0).sum().backward();
  return x.grad().select(0, 1).item<double>() == 2 &&
         op_cube(x.detach()).select(0, 0).item<double>() == 27;
}

}  // namespace

int main() {
  bool good = true;
  const auto expect = [&](const char* what, bool holds) {
    std::printf("%s: %s\n", what, holds ? "yes" : "NO");
    good = good && holds;
  };
  expect("training lowers the loss", training_lowers_the_loss());
  expect("errors are caught by type", errors_are_caught_by_type());
  expect("guards reach the library", guards_reach_the_library());
  expect("own operators run", own_operators_run());
  return good ? 0 : 1;
}
