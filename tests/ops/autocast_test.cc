// Every operator with an autocast class accepts the dtypes that the class casts its arguments to.

#include "autograd/autocast.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/ops/operator_call.h"

namespace lockstep {
namespace {

/// The sample's arguments, with every float32 tensor (or every second one) cast to `dtype`.
Arguments with_halves(const Operator& op, const Sample& sample, DType dtype, size_t every) {
  size_t next = 0;
  return map_tensors(arguments_of(op, sample), [&](const Tensor& tensor) {
    const bool chosen = tensor.dtype() == DType::kF32 && next++ % every == 0;
    return chosen ? cast_copy(tensor, dtype) : tensor;
  });
}

/// Whether any tensor is bfloat16 or float16.
bool has_half(const Arguments& arguments) {
  bool found = false;
  for (const Value& value : arguments) {
    each_defined_tensor(value, [&](const Tensor& tensor) {
      found = found || tensor.dtype() == DType::kBF16 || tensor.dtype() == DType::kF16;
    });
  }
  return found;
}

/// Whether the call has a dtype argument.
bool names_dtype(const Arguments& arguments) {
  return std::ranges::any_of(arguments,
                             [](const Value& value) { return value.tag() == Value::Tag::kDType; });
}

void check(const Operator& op, const Sample& sample, DType dtype, bool wide_result) {
  for (const size_t every : {1, 2}) {
    Arguments arguments = with_halves(op, sample, dtype, every);
    const bool halves = has_half(arguments);
    if (!halves && op.autocast() != Autocast::kLowerPrecision) continue;
    const AutocastGuard region(DeviceType::kCPU, true, dtype);
    const Results results = call_operator(op, arguments);
    if (results.tensors.empty() || !results.tensors[0].defined() || names_dtype(arguments))
      continue;
    const DType found = results.tensors[0].dtype();
    if (!is_floating(found)) continue;
    if (op.autocast() == Autocast::kF32 || wide_result) {
      EXPECT_EQ(name(found), "float32");
    } else if (op.autocast() == Autocast::kLowerPrecision) {
      EXPECT_EQ(name(found), name(dtype));
    }
  }
}

TEST(AutocastClasses, EveryOperatorTakesWhatItsClassGives) {
  int checked = 0;
  for_each_operator([&](const Operator& op, const OpSamples& samples) {
    if (op.autocast() == Autocast::kNone || op.schema().is_mutable()) return;
    ++checked;
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      SCOPED_TRACE(name(dtype));
      for_each_sample(samples.calls,
                      [&](const Sample& sample) { check(op, sample, dtype, samples.wide_result); });
    }
  });
  EXPECT_GT(checked, 80);
}

}  // namespace
}  // namespace lockstep
