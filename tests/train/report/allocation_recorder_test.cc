#include "train/report/allocation_recorder.h"

#include <gtest/gtest.h>

#include "core/ops/factory/factory.h"

namespace lockstep::train {
namespace {

TEST(AllocationRecorder, RecordsAsLongAsItLives) {
  CachingAllocator& memory = caching_allocator(kCPU);
  {
    AllocationRecorder recorder(memory);
    (void)empty({1000});
    EXPECT_FALSE(memory.snapshot().trace.empty());
  }
  (void)empty({1000});
  EXPECT_TRUE(memory.snapshot().trace.empty());
}

}  // namespace
}  // namespace lockstep::train
