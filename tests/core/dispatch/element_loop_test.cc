#include "core/dispatch/element_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/pointwise/pointwise.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

TEST(LoopCapture, TakesTheLoopInsteadOfItsResult) {
  const Tensor a = ones({3}), b = ones({3}), out = zeros({3});
  LoopCapture capture;
  add_out(out, a, b);
  const std::optional<LoopCapture::Taken> taken = capture.taken();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->result, out.data());
  EXPECT_EQ(taken->count, 3);
  EXPECT_THAT(taken->operands, ElementsAre(a.data(), b.data()));
  EXPECT_EQ(out.data<float>()[0], 0);
}

TEST(LoopCapture, OfSeveralKernelsTakesNone) {
  const Tensor a = ones({3});
  LoopCapture capture;
  EXPECT_FALSE(capture.taken());
  a.neg();
  EXPECT_TRUE(capture.taken());
  a.exp();
  EXPECT_FALSE(capture.taken());
}

TEST(LoopCapture, EndsWithItsScope) {
  const Tensor a = ones({3});
  { const LoopCapture capture; }
  EXPECT_EQ(LoopCapture::active(), nullptr);
  EXPECT_EQ(a.neg().data<float>()[2], -1);
}

TEST(LoopCapture, LeavesLoopsThatReportToTheirCaller) {
  const Tensor a = ones({3}, DType::kI64);
  LoopCapture capture;
  a.floor_divide(a);
  EXPECT_FALSE(capture.taken());
}

LoopProgram::Slot scratch() { return {.place = LoopProgram::Place::kScratch}; }

TEST(LoopProgram, SlotsShareBuffersThatNothingReadsAnyMore) {
  LoopProgram program;
  program.slots = {{}, scratch(), scratch(), scratch(), scratch()};
  program.steps = {
      {nullptr, {0}, 1}, {nullptr, {1}, 2}, {nullptr, {2, 2}, 3}, {nullptr, {3, 2}, 4}};
  program.assign_buffers();
  // A result never lies where an operand of its step does.
  std::vector<int32_t> buffers;
  for (const LoopProgram::Slot& slot : program.slots) buffers.push_back(slot.buffer);
  EXPECT_THAT(buffers, ElementsAre(-1, 0, 1, 0, 2));
  EXPECT_EQ(program.buffers, 3);
}

TEST(LoopBackend, IsThereForTheCpu) {
  EXPECT_NE(loop_backend(DeviceType::kCPU), nullptr);
  EXPECT_EQ(loop_backend(DeviceType::kMeta), nullptr);
}

}  // namespace
}  // namespace lockstep
