#include "train/joining/step_bytes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace lockstep::train {
namespace {

TEST(StepBytes, KeepEveryMemberOfAStepAndTheBitsOfItsNumbers) {
  StepResult step;
  step.step = 41;
  step.loss = std::numeric_limits<double>::quiet_NaN();
  step.grad_norm = 0.1;
  step.learning_rate = -0.0;
  step.tokens = 256;
  step.seconds = 0.25;
  step.data_wait_ms = 3;
  step.exposed_comm_ms = 4;
  step.sent_bytes = 5;
  step.loss_scale = 65536;
  step.outcome = {.finite = false, .overflowed = true, .spoiled = true, .spike = true};
  step.outcome.left_out = true;
  step.non_finite = "the loss of rank 1";
  step.audit = "";
  step.spike = "loss 7 is above 3";
  step.stop = true;
  const StepResult read = step_of_bytes(to_bytes(step));
  EXPECT_EQ(to_bytes(read), to_bytes(step));
  EXPECT_EQ(read.step, 41);
  EXPECT_EQ(std::bit_cast<uint64_t>(read.loss), std::bit_cast<uint64_t>(step.loss));
  EXPECT_EQ(read.grad_norm, 0.1);
  EXPECT_TRUE(std::signbit(read.learning_rate));
  EXPECT_EQ(read.outcome, step.outcome);
  EXPECT_EQ(read.non_finite, step.non_finite);
  EXPECT_EQ(read.spike, step.spike);
  EXPECT_EQ(read.sent_bytes, 5);
  EXPECT_TRUE(read.stop);
}

TEST(StepBytes, OfAnotherLengthAreRefused) {
  StepResult step;
  step.spike = "a text";
  const std::string bytes = to_bytes(step);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW((void)step_of_bytes(bytes.substr(0, length)), DataError) << length;
  }
}

}  // namespace
}  // namespace lockstep::train
