// For every operator, a device without kernels gives the results of the CPU. Its memory is not
// addressable by the CPU, so code that bypasses the dispatcher or Allocator::copy crashes.

#include "core/dispatch/cpu_fallback.h"

#include <gtest/gtest.h>

#include "tests/core/tensor/far_memory.h"
#include "tests/ops/device_agreement.h"

namespace lockstep {
namespace {

constexpr Device kFar{DeviceType::kPrivate1, 0};

class CpuFallbackOfEveryOperator : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static FarMemory* const memory = new FarMemory();
    set_allocator(DeviceType::kPrivate1, memory);
  }
  static void TearDownTestSuite() { set_allocator(DeviceType::kPrivate1, nullptr); }

  const Registration fallback_ = register_cpu_fallback(Key::kPrivate1);
};

TEST_F(CpuFallbackOfEveryOperator, GivesTheCpusResultsAndStrides) { expect_results_of_cpu(kFar); }

TEST_F(CpuFallbackOfEveryOperator, ItsWritingFormsWriteWhatTheCpuWrites) {
  expect_writes_of_cpu(kFar);
}

}  // namespace
}  // namespace lockstep
