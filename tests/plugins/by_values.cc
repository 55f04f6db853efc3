// A plug-in with operators whose results no shape rule can describe: sizes that depend on elements,
// numbers, and views.

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/plugin/plugin_wrapper.h"

namespace {

using namespace lockstep::plugin;

template <class T>
int64_t positives_of(const NewResult& values, const View& self) {
  const T* from = self.data<T>();
  std::vector<T> found;
  std::copy_if(from, from + self.numel(), std::back_inserter(found), [](T x) { return x > 0; });
  const auto count = static_cast<int64_t>(found.size());
  const Writable to = values.make({count}, self.dtype());
  std::copy(found.begin(), found.end(), to.data<T>());
  return count;
}

int64_t positives(NewResult values, View self) {
  return self.dtype() == DType::kF64 ? positives_of<double>(values, self)
                                     : positives_of<float>(values, self);
}

bool is_sorted(View self) {
  if (self.dtype() == DType::kF64) {
    return std::is_sorted(self.data<double>(), self.data<double>() + self.numel());
  }
  return std::is_sorted(self.data<float>(), self.data<float>() + self.numel());
}

double largest_of(const float* elements, int64_t count, double from) {
  for (int64_t i = 0; i < count; ++i) from = std::max(from, static_cast<double>(elements[i]));
  return from;
}

double largest(View self, double from) {
  return largest_of(self.data<float>(), self.numel(), from);
}

/// Reading a number from a GPU tensor waits for the stream.
double largest_on_gpu(Gpu gpu, View self, double from) {
  std::vector<float> elements(static_cast<size_t>(self.numel()));
  gpu.read(elements.data(), self.data<float>(), elements.size());
  return largest_of(elements.data(), self.numel(), from);
}

}  // namespace

LS_PLUGIN(library) {
  library.define("values::positives(Tensor self) -> (Tensor, int)", "Those above 0; their number.")
      .dynamic()
      .kernel(&positives)
      .derivative({"self"}, [](Backward& call) {
        const Tensor mask = call_many("gt.Scalar", call.saved(0), 0)[0];
        const Tensor zeros = lockstep::plugin::call("mul.Scalar", call.saved(0), 0.0);
        call.set(0, lockstep::plugin::call("masked_scatter", zeros, mask, call.gradient()));
      });
  library.define("values::is_sorted(Tensor self) -> bool", "Whether no element is below the last.")
      .kernel(&is_sorted);
  library.define("values::largest(Tensor self, float from=0) -> float", "The largest, or `from`.")
      .kernel(&largest)
      .kernel(&largest_on_gpu, Strides::kContiguous, Backend::kCUDA);
  library.define("values::same(Tensor a, Tensor b) -> bool", "Equal, by a body.")
      .body([](Tensor a, Tensor b) { return call_for<bool>("equal", a, b); });
  library.define("values::column(Tensor(a) self, int index) -> Tensor(a)", "A view, by a body.")
      .body([](Tensor self, int64_t index) { return call("select.int", self, -1, index); });
  library.define("values::makes_twice(Tensor self) -> Tensor", "Wrong: makes its result twice.")
      .dynamic()
      .kernel([](NewResult result, View) {
        result.make({2}, DType::kF32);
        result.make({2}, DType::kF32);
      });
  library.define("values::makes_nothing(Tensor self) -> Tensor", "Wrong: makes no result.")
      .dynamic()
      .kernel([](NewResult, View) {});
  library.define("values::has_a_rule(Tensor self) -> Tensor", "Wrong: makes what a rule described.")
      .rule([](Rule& rule, View self) { rule.result_like(self); })
      .kernel([](NewResult result, View) { result.make({2}, DType::kF32); });
  library.define("values::has_none(Tensor self) -> Tensor", "Wrong: expects memory, has no rule.")
      .dynamic()
      .kernel([](Result, View) {});
}
