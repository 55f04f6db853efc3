// A plug-in that uses the C++ wrapper: an operator with all features, one that modifies its
// argument, a composite, one with a list, and a kernel that overrides a built-in operator's.

#include <algorithm>
#include <numeric>

#include "core/plugin/plugin_wrapper.h"

namespace {

using namespace lockstep::plugin;

template <class T>
void scale_clamp_loop(const Result& out, const View& self, double scale, double max) {
  const T* from = self.data<T>();
  T* to = out.data<T>();
  parallel_for(self.numel(), 1024, [=](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      to[i] = std::min(from[i] * static_cast<T>(scale), static_cast<T>(max));
    }
  });
}

void scale_clamp(Result out, View self, double scale, double max) {
  if (self.dtype() == DType::kF64) {
    scale_clamp_loop<double>(out, self, scale, max);
  } else {
    scale_clamp_loop<float>(out, self, scale, max);
  }
}

void scale_clamp_rule(Rule& rule, View self, double, double) {
  if (self.dtype() == DType::kF64 || self.dtype() == DType::kF32) return rule.result_like(self);
  if (self.dtype() < DType::kF16) throw Failure("expected a floating tensor", LS_ERROR_DTYPE);
  rule.result_like(self);
  rule.compute(DType::kF32);
}

/// The gradient is zero where the result was clamped.
void scale_clamp_backward(Backward& call) {
  const Tensor inside = call_many("lt.Scalar", call.saved(0), call.argument<double>(2))[0];
  const Tensor scaled =
      lockstep::plugin::call("mul.Scalar", call.gradient(), call.argument<double>(1));
  call.set(0, lockstep::plugin::call("mul.Tensor", scaled, inside));
}

Tensor scale_clamp_batched(const Batch&, Tensor self, double scale, double max) {
  return call("test::scale_clamp", self, scale, max);
}

void add_to(Writable self, View other) {
  for (int64_t i = 0; i < self.numel(); ++i) self.data<float>()[i] += other.data<float>()[i];
}

void sum_list(Result out, std::vector<View> tensors, std::optional<double> scale) {
  std::fill_n(out.data<float>(), out.numel(), 0.0f);
  for (const View& tensor : tensors) {
    for (int64_t i = 0; i < out.numel(); ++i) out.data<float>()[i] += tensor.data<float>()[i];
  }
  for (int64_t i = 0; i < out.numel(); ++i) {
    out.data<float>()[i] *= static_cast<float>(scale.value_or(1));
  }
}

/// Sum and difference in one call.
void both(Result sum, Result difference, View a, View b) {
  for (int64_t i = 0; i < a.numel(); ++i) {
    sum.data<double>()[i] = a.data<double>()[i] + b.data<double>()[i];
    difference.data<double>()[i] = a.data<double>()[i] - b.data<double>()[i];
  }
}

void nothing(Result, View) {}

/// Wrong on purpose, to show which kernel runs.
void seven(Result out, View) { std::fill_n(out.data<float>(), out.numel(), 7.0f); }

}  // namespace

LS_PLUGIN(library) {
  library
      .define("test::scale_clamp(Tensor self, float scale=1, float max=6) -> Tensor",
              "min(scale * self, max), element by element.")
      .rule(&scale_clamp_rule)
      .kernel(&scale_clamp)
      .derivative({"output0"}, &scale_clamp_backward)
      .batching(&scale_clamp_batched)
      .autocast(Autocast::kF32)
      .in_place()
      .out();
  library.define("test::add_to_(Tensor(a!) self, Tensor other) -> Tensor(a!)", "self += other.")
      .rule([](Rule&, View self, View other) {
        if (self.numel() != other.numel()) throw Failure("sizes differ", LS_ERROR_SHAPE);
      })
      .kernel(&add_to)
      .derivative({}, [](Backward& call) {
        call.set(0, call.gradient());
        call.set(1, call.gradient());
      });
  library.define("test::double_it(Tensor self) -> Tensor", "self + self.").body([](Tensor self) {
    return call("add.Tensor", self, self);
  });
  library.define("test::sum_list(Tensor[] tensors, float? scale=None) -> Tensor", "Their sum.")
      .rule([](Rule& rule, std::vector<View> tensors, std::optional<double>) {
        if (tensors.empty()) throw Failure("no tensors", LS_ERROR_SHAPE);
        rule.result_like(tensors[0]);
      })
      .kernel(&sum_list)
      .not_differentiable("the tests need one without");
  library
      .define("test::both(Tensor a, Tensor b) -> (Tensor sum, Tensor difference)",
              "a + b and a - b.")
      .rule([](Rule& rule, View a, View) {
        rule.result_like(a);
        rule.result_like(a);
      })
      .kernel(&both)
      .derivative({}, [](Backward& call) {
        const Tensor sum = call.gradient(0);
        const Tensor difference = call.gradient(1);
        if (!sum.defined()) {
          call.set(0, difference);
          call.set(1, lockstep::plugin::call("neg", difference));
        } else if (!difference.defined()) {
          call.set(0, sum);
          call.set(1, sum);
        } else {
          call.set(0, lockstep::plugin::call("add.Tensor", sum, difference));
          call.set(1, lockstep::plugin::call("sub.Tensor", sum, difference));
        }
      });
  library.define("test::nothing(Tensor self) -> Tensor", "Leaves its result as it was allocated.")
      .rule([](Rule& rule, View self) { rule.result_like(self); })
      .kernel(&nothing, Strides::kAny);
  library.override_kernel("tanh", &seven);
}
