// The caching allocator over the CUDA runtime with a fake driver: no GPU needed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/device/waits.h"
#include "core/memory/units.h"
#include "core/tensor/event.h"
#include "tests/core/cuda/fake_gpu.h"
#include "tests/device/block_stress.h"

namespace lockstep::cuda {
namespace {

using ::testing::IsEmpty;

constexpr lockstep::Device kGpu{DeviceType::kCUDA, 0};

// ThreadSanitizer makes the words that are compared many times as slow, and races need fewer steps.
#ifdef __SANITIZE_THREAD__
constexpr int kSteps = 100;
constexpr int kStepsOfAFailingDriver = 10;
#else
constexpr int kSteps = 600;
constexpr int kStepsOfAFailingDriver = 30;
#endif

class CudaAllocator : public ::testing::TestWithParam<bool> {
 protected:
  AllocatorOptions options() const { return {.expandable_segments = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Segments, CudaAllocator, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Expandable" : "Plain"; });

TEST_P(CudaAllocator, BlocksHoldWhatTheirOwnersWroteOnAllStreams) {
  FakeGpu gpu(96);
  {
    CachingAllocator allocator(kGpu, gpu.runtime.memory(0), options());
    BlockStress stress(allocator, 3, 4 * kMiB);
    for (int i = 0; i < kSteps; ++i) stress.step();
    EXPECT_EQ(stress.wrong(), 0u);
  }
  EXPECT_THAT(gpu.fake.held(),
              ::testing::Not(::testing::ContainsRegex("granules|ranges|mappings|allocations")));
  EXPECT_THAT(gpu.fake.misuse(), IsEmpty());
}

TEST_P(CudaAllocator, ARepeatedStepAsksTheDriverForNoMemory) {
  FakeGpu gpu(32);
  CachingAllocator allocator(kGpu, gpu.runtime.memory(0), options());
  const auto step = [&] {
    std::vector<Block> blocks;
    for (const size_t bytes : {100, 3'000'000, 5000, 12'000'000, 700'000}) {
      blocks.push_back(allocator.allocate(bytes, default_stream(kGpu)));
    }
    for (const Block& block : blocks) allocator.free(block);
  };
  step();
  gpu.fake.take_calls();
  for (int i = 0; i < 5; ++i) step();
  EXPECT_THAT(gpu.fake.take_calls(), IsEmpty());
}

/// Steps of ever other shapes, queued one ahead of the GPU, wait for nothing but the step before,
/// although memory is moved out of holes.
TEST(CudaAllocatorOfVariableShapes, NeverWaitsForTheGpu) {
  FakeGpu gpu(1024);
  CachingAllocator allocator(kGpu, gpu.runtime.memory(0),
                             default_allocator_options(DeviceType::kCUDA));
  EXPECT_EQ(allocator.options().reserve_ratio, 1.15);
  const lockstep::Stream stream = default_stream(kGpu);
  std::mt19937 random(1);
  const int64_t waits = hidden_waits();
  std::array<Event, 2> ends;
  for (size_t step = 0; step < 200; ++step) {
    Event& end = ends[step % 2];
    if (step >= 2) end.synchronize();
    const size_t length = 1 + random() % 64;
    std::vector<Block> blocks;
    for (const size_t each : {1, 7, 3, 12, 5, 2}) {
      blocks.push_back(allocator.allocate(each * length * 100'000, stream));
      gpu.runtime.copy(stream, blocks.back().data, blocks.front().data, 8, Transfer::kWithin);
      if (blocks.size() % 3 == 0) {
        allocator.free(blocks[blocks.size() - 2]);
        blocks.erase(blocks.end() - 2);
      }
    }
    for (const Block& block : blocks) allocator.free(block);
    end.record(stream);
  }
  EXPECT_EQ(hidden_waits(), waits);
  EXPECT_GT(allocator.memory_stats().num_stitched, 0);
  gpu.runtime.synchronize(0);
  EXPECT_THAT(gpu.fake.misuse(), IsEmpty());
}

/// Whichever driver call fails: a request that cannot be served throws, live blocks keep their
/// contents, the allocator stays usable, and no memory leaks.
RC_GTEST_PROP(CudaAllocator, SurvivesADriverThatFails, ()) {
  FakeGpu gpu(10);
  {
    const AllocatorOptions options{.expandable_segments = *rc::gen::arbitrary<bool>()};
    CachingAllocator allocator(kGpu, gpu.runtime.memory(0), options);
    BlockStress stress(allocator, *rc::gen::arbitrary<uint64_t>(), 3 * kMiB);
    for (int i = 0; i < kStepsOfAFailingDriver; ++i) {
      if (*rc::gen::inRange(0, 4) == 0) {
        gpu.fake.fail_taking(*rc::gen::inRange(0, 8),
                             *rc::gen::element(CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE));
      }
      try {
        stress.step();
      } catch (const OutOfMemoryError&) {
      } catch (const DeviceError& error) {
        RC_ASSERT(std::string(error.what()).starts_with("[cuda] cu"));
      }
    }
    gpu.fake.fail_taking(-1, CUDA_SUCCESS);
    RC_ASSERT(stress.wrong() == 0u);
  }
  const std::string held = gpu.fake.held();
  RC_ASSERT(held.find("granules") == std::string::npos);
  RC_ASSERT(held.find("ranges") == std::string::npos);
  RC_ASSERT(held.find("allocations") == std::string::npos);
  RC_ASSERT(gpu.fake.misuse().empty());
}

}  // namespace
}  // namespace lockstep::cuda
