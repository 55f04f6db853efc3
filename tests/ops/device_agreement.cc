#include "tests/ops/device_agreement.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/device/transfer.h"
#include "tests/ops/operator_forms.h"

namespace lockstep {

namespace {

Tensor copy_on(Device device, const Tensor& tensor) {
  return tensor.defined() ? transferred(tensor, device) : Tensor();
}

Arguments arguments_on(Device device, const Operator& op, const Arguments& arguments) {
  Arguments there =
      map_tensors(arguments, [&](const Tensor& tensor) { return copy_on(device, tensor); });
  for (size_t i = 0; i < there.size(); ++i) {
    if (op.schema().arguments[i].type.base == BaseType::kDevice) there[i] = Value(device);
  }
  return there;
}

/// Other operators return numbers, which have no device.
bool returns_tensors(const Operator& op) {
  return op.schema().returns.empty() || op.schema().returns[0].type.base == BaseType::kTensor;
}

}  // namespace

void expect_results_of_cpu(Device device) {
  for_each_operator([&](const Operator& op, const OpSamples& samples) {
    for_each_sample(samples.calls, [&](const Sample& sample) {
      Arguments here = arguments_of(op, sample);
      Arguments there = arguments_on(device, op, here);
      const Results want = call_operator(op, here);
      Results got = call_operator(op, there);
      ASSERT_EQ(got.tensors.size(), want.tensors.size());
      for (size_t i = 0; i < got.tensors.size(); ++i) {
        Tensor& tensor = got.tensors[i];
        ASSERT_EQ(tensor.defined(), want.tensors[i].defined());
        if (!tensor.defined() || !returns_tensors(op)) continue;
        EXPECT_EQ(tensor.device(), device);
        EXPECT_EQ(to_string(tensor.strides()), to_string(want.tensors[i].strides()));
        tensor = copy_on(kCPU, tensor);
      }
      if (samples.unspecified_values) return;
      EXPECT_EQ(difference(got, want, 0), "");
    });
  });
}

void expect_writes_of_cpu(Device device) {
  for_each_operator([&](const Operator& op, const OpSamples& samples) {
    for (const WritingForm& form : writing_forms(op)) {
      SCOPED_TRACE(form.op->name());
      for_each_sample(samples.calls, [&](const Sample& sample) {
        std::optional<Arguments> here = form.arguments(op, arguments_of(op, sample));
        if (!here) return;
        if (!form.in_place) {
          for (size_t i : form.outputs()) (*here)[i] = Value(empty_tensor({0}, DType::kF64));
        }
        Arguments there = arguments_on(device, *form.op, *here);
        bool refused = false;
        try {
          call_operator(*form.op, *here);
        } catch (const Error&) {
          refused = true;  // the result does not fit the destination
        }
        if (refused) {
          EXPECT_THROW(call_operator(*form.op, there), Error);
          return;
        }
        call_operator(*form.op, there);
        if (samples.unspecified_values) return;
        for (size_t i : form.outputs()) {
          const Tensor& written = there[i].tensor();
          EXPECT_EQ(written.device(), device);
          EXPECT_EQ(difference({{copy_on(kCPU, written)}}, {{(*here)[i].tensor()}}, 0), "");
        }
      });
    }
  });
}

}  // namespace lockstep
