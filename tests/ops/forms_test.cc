// In-place and out= forms share rule and kernel with the functional form and must agree with it.

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "core/error.h"
#include "tests/ops/operator_call.h"

namespace lockstep {
namespace {

/// Bools may be written into integers, both into floats.
int category(DType dtype) { return is_floating(dtype) ? 2 : is_integral(dtype) ? 1 : 0; }

bool fits(const Tensor& result, const Tensor& self) {
  return same(result.sizes(), self.sizes()) && category(result.dtype()) <= category(self.dtype());
}

/// Argument 0 laid out otherwise, the rest as it was.
Arguments with_strided_self(Arguments arguments) {
  arguments[0] = Value(with_gaps(arguments[0].tensor()));
  return arguments;
}

TEST(InPlaceForms, WriteWhatTheFunctionalFormReturns) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    const Operator* in_place = form_of(op, OpForm::kInPlace);
    if (in_place == nullptr) return;
    int tried = 0;
    for_each_sample(samples.calls, [&](const Sample& sample) {
      Arguments arguments = arguments_of(op, sample);
      Results want = call_operator(op, arguments);
      if (!fits(want.tensors.at(0), arguments[0].tensor())) return;
      want.tensors[0] = cast_copy(want.tensors[0], arguments[0].tensor().dtype());
      ++tried;
      for (Arguments fresh :
           {arguments_of(op, sample), with_strided_self(arguments_of(op, sample))}) {
        const Tensor self = fresh[0].tensor();
        const uint32_t version = self.version();
        const Results got = call_operator(*in_place, fresh);
        EXPECT_TRUE(got.tensors.at(0).is_same(self));
        EXPECT_EQ(difference({{self}}, want, 1e-6), "");
        EXPECT_GT(self.version(), version);
      }
    });
    EXPECT_GT(tried, 0) << "no sample's result fits into its first argument";
  });
}

/// Gradients of the float32 tensors of a call, of which the result gets the gradient `weights`.
/// `in_place` writes into a copy of the first argument, which is none of the leaves itself.
Results gradients(const Operator& op, const Operator* in_place, const Sample& sample) {
  Arguments arguments = arguments_of(op, sample);
  std::vector<Tensor> leaves;
  map_tensors(arguments, [&](const Tensor& tensor) {
    if (tensor.dtype() == DType::kF32) leaves.push_back(tensor.set_requires_grad());
    return tensor;
  });
  if (in_place != nullptr) arguments[0] = Value(arguments[0].tensor().clone());
  const Results results = call_operator(in_place != nullptr ? *in_place : op, arguments);
  const Tensor& result = results.tensors.at(0);
  GradOptions options;
  options.allow_unused = true;
  if (!result.requires_grad()) return {};
  return {grad({result}, leaves, {floats(result.sizes(), 9)}, options)};
}

TEST(InPlaceForms, GiveTheGradientsOfTheFunctionalForm) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    const Operator* in_place = form_of(op, OpForm::kInPlace);
    if (in_place == nullptr || !op.derivative().exists()) return;
    for_each_sample(samples.calls, [&](const Sample& sample) {
      Arguments arguments = arguments_of(op, sample);
      const Tensor self = arguments[0].tensor();
      const Tensor result = call_operator(op, arguments).tensors.at(0);
      if (!fits(result, self) || self.dtype() != DType::kF32) return;
      EXPECT_EQ(difference(gradients(op, in_place, sample), gradients(op, nullptr, sample), 1e-6),
                "");
    });
  });
}

TEST(InPlaceForms, RefuseAResultOfAnotherShape) {
  const Operator& add = dispatcher().find("add_.Tensor");
  Arguments arguments = arguments_of(add, call("", floats({4}), floats({3, 4})));
  EXPECT_THROW(call_operator(add, arguments), ShapeError);
}

TEST(OutForms, WriteWhatTheFunctionalFormReturns) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    const Operator* out_form = form_of(op, OpForm::kOut);
    if (out_form == nullptr) return;
    for_each_sample(samples.calls, [&](const Sample& sample) {
      Arguments arguments = arguments_of(op, sample);
      const Results want = call_operator(op, arguments);
      const Tensor& result = want.tensors.at(0);
      const Tensor room = empty_tensor(result.sizes(), result.dtype());
      for (const Tensor& out : {empty_tensor({0}, result.dtype()), room, with_gaps(room)}) {
        Arguments fresh = arguments_of(op, sample);
        fresh.emplace_back(out);
        const Results got = call_operator(*out_form, fresh);
        EXPECT_TRUE(got.tensors.at(0).is_same(out));
        if (samples.unspecified_values) continue;
        EXPECT_EQ(difference({{out}}, want, 1e-6), "");
      }
    });
  });
}

}  // namespace
}  // namespace lockstep
