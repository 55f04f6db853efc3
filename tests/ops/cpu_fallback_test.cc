// A device without a kernel of its own gives what the cpu gives, for every operator. Its memory is
// out of the cpu's reach, so whatever bypasses the dispatcher or Allocator::copy ends the program.

#include "core/cpu_fallback.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/transfer.h"
#include "tests/core/far_memory.h"
#include "tests/ops/operator_forms.h"

namespace lockstep {
namespace {

constexpr Device kFar{DeviceType::kPrivate1, 0};

Tensor far_copy(const Tensor& tensor) {
  return tensor.defined() ? transferred(tensor, kFar) : Tensor();
}
Tensor near_copy(const Tensor& tensor) {
  return tensor.defined() ? transferred(tensor, kCPU) : Tensor();
}

Arguments far_arguments(const Operator& op, const Arguments& arguments) {
  Arguments there = map_tensors(arguments, far_copy);
  for (size_t i = 0; i < there.size(); ++i) {
    if (op.schema().arguments[i].type.base == BaseType::kDevice) there[i] = Value(kFar);
  }
  return there;
}

/// Else it returns numbers, which have no device.
bool returns_tensors(const Operator& op) {
  return op.schema().returns.empty() || op.schema().returns[0].type.base == BaseType::kTensor;
}

class CpuFallbackOfEveryOperator : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static FarMemory* const memory = new FarMemory();
    set_allocator(DeviceType::kPrivate1, memory);
  }
  static void TearDownTestSuite() { set_allocator(DeviceType::kPrivate1, nullptr); }

  const Registration fallback_ = register_cpu_fallback(Key::kPrivate1);
};

TEST_F(CpuFallbackOfEveryOperator, GivesTheCpusResultsAndStrides) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    for_each_sample(samples.calls, [&](const Sample& sample) {
      Arguments here = arguments_of(op, sample);
      Arguments there = far_arguments(op, here);
      const Results want = call_operator(op, here);
      Results got = call_operator(op, there);
      ASSERT_EQ(got.tensors.size(), want.tensors.size());
      for (size_t i = 0; i < got.tensors.size(); ++i) {
        Tensor& tensor = got.tensors[i];
        ASSERT_EQ(tensor.defined(), want.tensors[i].defined());
        if (!tensor.defined() || !returns_tensors(op)) continue;
        EXPECT_EQ(tensor.device(), kFar);
        EXPECT_EQ(to_string(tensor.strides()), to_string(want.tensors[i].strides()));
        tensor = near_copy(tensor);
      }
      if (samples.unspecified_values) return;
      EXPECT_EQ(difference(got, want, 0), "");
    });
  });
}

TEST_F(CpuFallbackOfEveryOperator, ItsWritingFormsWriteWhatTheCpuWrites) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    for (const WritingForm& form : writing_forms(op)) {
      SCOPED_TRACE(form.op->name());
      for_each_sample(samples.calls, [&](const Sample& sample) {
        std::optional<Arguments> here = form.arguments(op, arguments_of(op, sample));
        if (!here) return;
        if (!form.in_place) {
          for (size_t i : form.outputs()) (*here)[i] = Value(empty_tensor({0}, DType::kF64));
        }
        Arguments there = far_arguments(*form.op, *here);
        bool refused = false;
        try {
          call_operator(*form.op, *here);
        } catch (const Error&) {
          refused = true;  // the result does not fit where it is to go
        }
        if (refused) {
          EXPECT_THROW(call_operator(*form.op, there), Error);
          return;
        }
        call_operator(*form.op, there);
        if (samples.unspecified_values) return;
        for (size_t i : form.outputs()) {
          const Tensor& written = there[i].tensor();
          EXPECT_EQ(written.device(), kFar);
          EXPECT_EQ(difference({{near_copy(written)}}, {{(*here)[i].tensor()}}, 0), "");
        }
      });
    }
  });
}

}  // namespace
}  // namespace lockstep
