// The strides of the arguments change no element of a result.

#include <gtest/gtest.h>

#include "tests/conformance/elements.h"
#include "tests/ops/operator_call.h"

namespace lockstep {
namespace {

/// Kernels may sum in a different order for another layout.
constexpr double kTolerance = 1e-5;

Tensor row_major(const Tensor& tensor) {
  const Tensor dense = empty_tensor(tensor.sizes(), tensor.dtype());
  if (is_floating(tensor.dtype())) {
    set_elements(dense, elements_as<double>(tensor));
  } else {
    set_elements(dense, elements_as<int64_t>(tensor));
  }
  return dense;
}

TEST(Strides, DoNotChangeResults) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    if (samples.reads_strides || samples.unspecified_values) return;
    for_each_sample(samples.calls, [&](const Sample& sample) {
      Arguments plain = map_tensors(arguments_of(op, sample), row_major);
      Arguments strided = map_tensors(arguments_of(op, sample), with_gaps);
      const Results want = call_operator(op, plain);
      const Results got = call_operator(op, strided);
      EXPECT_EQ(difference(got, want, kTolerance), "");
    });
  });
}

}  // namespace
}  // namespace lockstep
