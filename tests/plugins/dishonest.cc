// Operators that violate their schemas; opcheck must find each.

#include <algorithm>

#include "core/plugin/plugin_wrapper.h"

using namespace lockstep::plugin;

namespace {

void like(Rule& rule, View self) { rule.result_like(self); }

template <class T>
void copy_as(const Result& out, const View& self) {
  std::copy_n(self.data<T>(), self.numel(), out.data<T>());
}

void copy(Result out, View self) {
  if (self.dtype() == DType::kF64) return copy_as<double>(out, self);
  copy_as<float>(out, self);
}

/// Modifies an argument that its schema does not mark as written.
void change(Result out, View self) {
  copy(out, self);
  if (self.dtype() == DType::kF64) const_cast<double*>(self.data<double>())[0] += 1;
  if (self.dtype() == DType::kF32) const_cast<float*>(self.data<float>())[0] += 1;
}

void same_gradient(Backward& call) { call.set(0, call.gradient()); }

}  // namespace

LS_PLUGIN(library) {
  library.define("dishonest::honest(Tensor self) -> Tensor", "A copy.")
      .rule(&like)
      .kernel(&copy)
      .derivative({}, &same_gradient)
      .batching([](const Batch&, Tensor self) { return call("dishonest::honest", self); });
  library.define("dishonest::changes(Tensor self) -> Tensor", "")
      .rule(&like)
      .kernel(&change)
      .derivative({}, &same_gradient);
  library.define("dishonest::aliases(Tensor self) -> Tensor", "").body([](Tensor self) {
    return self;
  });
  library.define("dishonest::gradient(Tensor self) -> Tensor", "")
      .rule(&like)
      .kernel(&copy)
      .derivative({}, [](Backward& backward) {
        backward.set(0, call("mul.Scalar", backward.gradient(), 2));
      });
  library.define("dishonest::no_derivative(Tensor self) -> Tensor", "").rule(&like).kernel(&copy);
  library
      .define("dishonest::strides(Tensor self) -> Tensor",
              "Copies by address, whatever lies there.")
      .rule(&like)
      .kernel(&copy, Strides::kAny)
      .derivative({}, &same_gradient);
  library.define("dishonest::batching(Tensor self) -> Tensor", "")
      .rule(&like)
      .kernel(&copy)
      .derivative({}, &same_gradient)
      .batching([](const Batch&, Tensor self) { return call("mul.Scalar", self, 3); });
  library.define("dishonest::autocast(Tensor self) -> Tensor", "Takes float32 and float64 alone.")
      .rule(&like)
      .kernel(&copy)
      .derivative({}, &same_gradient)
      .autocast(Autocast::kLowerPrecision);
  library
      .define("dishonest::rule_strides(Tensor self) -> Tensor", "Transposed with elements alone.")
      .body([](Tensor self) {
        if (self.view().raw() == nullptr) return call("add.Scalar", self, 1);
        return call("add.Scalar", call("transpose.int", self, 0, 1), 1);
      });
  library.define("dishonest::rule(Tensor self) -> Tensor", "Its rule looks at elements.")
      .body([](Tensor self) {
        const View view = self.view();
        const bool wide = view.raw() != nullptr;
        return call("sum.dim_IntList", self, std::vector<int64_t>{0}, wide);
      });
}
