// The stream sanitizer and LOCKSTEP_LAUNCH_BLOCKING apply to kernels of cuda devices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/device/stream_sanitizer.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/event.h"
#include "tests/cuda/gpu.h"

namespace lockstep {
namespace {

class CudaSanitizer : public ::testing::Test {
 protected:
  CudaSanitizer() {
    stream_sanitizer::set_report_handler(
        [this](const std::string& text) { reports.push_back(text); });
    stream_sanitizer::enable(true);
  }
  ~CudaSanitizer() override {
    stream_sanitizer::enable(false);
    stream_sanitizer::set_report_handler({});
  }

  std::vector<std::string> reports;
};

TEST_F(CudaSanitizer, FindsAReadOnAnotherStreamThatNothingOrders) {
  const Tensor x = full({64}, 1, {DType::kF32, kGpu});
  const Stream side = get_stream_from_pool(kGpu);
  const StreamGuard guard(side);
  const Tensor y = exp(x);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports[0], ::testing::HasSubstr("[exp] on " + to_string(side) + " reads memory"));
  synchronize(kGpu);
}

TEST_F(CudaSanitizer, IsSilentWhereAnEventOrders) {
  const Tensor x = full({64}, 1, {DType::kF32, kGpu});
  const Stream side = get_stream_from_pool(kGpu);
  side.wait_stream(current_stream(kGpu));
  const StreamGuard guard(side);
  const Tensor y = exp(x);
  EXPECT_THAT(reports, ::testing::IsEmpty());
  synchronize(kGpu);
}

}  // namespace
}  // namespace lockstep
