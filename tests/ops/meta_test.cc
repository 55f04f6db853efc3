// The meta device runs shape rules only; they must predict what kernels and views return.

#include <gtest/gtest.h>

#include "core/base/check.h"
#include "tests/ops/operator_call.h"

namespace lockstep {
namespace {

std::string geometry(const Tensor& tensor) {
  if (!tensor.defined()) return "nothing";
  return fmt::format("{}{} strides {}", to_string(tensor.dtype()), tensor.shape(),
                     to_string(tensor.strides()));
}

Arguments meta_arguments(const Operator& op, const Sample& sample) {
  Arguments arguments = map_tensors(arguments_of(op, sample), on_meta);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (op.schema().arguments[i].type.base == BaseType::kDevice) arguments[i] = Value(kMeta);
  }
  return arguments;
}

TEST(Meta, GivesTheGeometryThatCpuGives) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    if (op.kind() != OpKind::kStructured && op.kind() != OpKind::kView) return;
    for_each_sample(samples.calls, [&](const Sample& sample) {
      Arguments real = arguments_of(op, sample);
      Arguments meta = meta_arguments(op, sample);
      const Results want = call_operator(op, real);
      const Results got = call_operator(op, meta);
      ASSERT_EQ(got.tensors.size(), want.tensors.size());
      for (size_t i = 0; i < got.tensors.size(); ++i) {
        EXPECT_EQ(geometry(got.tensors[i]), geometry(want.tensors[i]));
        if (!got.tensors[i].defined()) continue;
        EXPECT_EQ(got.tensors[i].device(), kMeta);
      }
    });
  });
}

TEST(Meta, RefusesOperatorsThatNeedValues) {
  int tried = 0;
  for_each_operator([&](const Operator& op, const OpSamples& samples) {
    if (op.kind() != OpKind::kDynamic && op.kind() != OpKind::kHostValue) return;
    for_each_sample(samples.calls, [&](const Sample& sample) {
      Arguments meta = meta_arguments(op, sample);
      EXPECT_THROW(call_operator(op, meta), Error);
      ++tried;
    });
  });
  EXPECT_GT(tried, 0);
}

}  // namespace
}  // namespace lockstep
