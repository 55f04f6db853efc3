// Guarantees of the emulated GPU (tests/emulation) for device code and launches.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/cuda/runtime.h"
#include "core/device/arithmetic_facts.h"
#include "tests/core/base/environment_variable.h"
#include "tests/emulation/device.h"
#include "tests/emulation/fake_driver.h"
// After device.h, whose definitions it uses in place of its own.
#include "core/cuda/kernel.cuh"

namespace lockstep::cuda {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

constexpr const char* kOrder = "LOCKSTEP_EMULATED_ORDER";

struct Sum {
  const float* in;
  float* out;  ///< one per block
};

LS_CUDA_KERNEL(emulation_sum_by_shuffles, Sum, 256) {
  __shared__ float of_warps[8];
  float value = p.in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x != 0) return;
  float sum = 0;
  for (unsigned i = 0; i < blockDim.x / 32; ++i) sum += of_warps[i];
  p.out[blockIdx.x] = sum;
}

LS_CUDA_KERNEL(emulation_sum_by_barriers, Sum, 256) {
  __shared__ float values[256];
  values[threadIdx.x] = p.in[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) values[threadIdx.x] += values[threadIdx.x + step];
  }
  if (threadIdx.x == 0) p.out[blockIdx.x] = values[0];
}

/// Reverses the elements of a block through shared memory.
LS_CUDA_KERNEL(emulation_turn_round, Sum, 1024) {
  auto* const values = dynamic_shared<float>();
  values[threadIdx.x] = p.in[threadIdx.x];
  __syncthreads();
  p.out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

struct Numbers {
  int64_t* out;
};

LS_CUDA_KERNEL(emulation_places, Numbers, 64) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  p.out[block * threads + thread] += block * threads + thread + 1;
}

template <int kSize, class T>
__device__ T unwritten(int i) {
  __shared__ T values[kSize];
  const T found = values[i];
  values[i] = 1;
  return found;
}

LS_CUDA_KERNEL(emulation_unwritten, Sum, 32) {
  p.out[0] = unwritten<3, float>(2);
  p.out[1] = static_cast<float>(unwritten<5, double>(4));
  p.out[2] = dynamic_shared<float>()[7];
}

struct Counters {
  int* integer;
  unsigned* natural;
  unsigned long long* wide;
  float* real;
};

LS_CUDA_KERNEL(emulation_atomics, Counters, 128) {
  atomicAdd(p.integer, -1);
  atomicMax(p.natural, threadIdx.x);
  atomicMin(p.natural + 1, threadIdx.x + 5);
  atomicCAS(p.natural + 2, threadIdx.x, threadIdx.x + 1);
  atomicAdd(p.wide, 1ull << 32);
  atomicAdd(p.real, 0.5f);
}

LS_CUDA_KERNEL(emulation_votes, Numbers, 64) {
  const bool odd = threadIdx.x % 2 == 1;
  const unsigned ballot = __ballot_sync(0xffffffff, odd);
  const int any = __any_sync(0xffffffff, threadIdx.x == 40);
  const int all = __all_sync(0xffffffff, threadIdx.x < 40);
  const int block = __syncthreads_or(threadIdx.x == 63);
  const int nobody = __syncthreads_or(0);
  p.out[threadIdx.x] = ballot + (int64_t{any} << 32) + (int64_t{all} << 33) +
                       (int64_t{block} << 34) + (int64_t{nobody} << 35);
}

LS_CUDA_KERNEL(emulation_segments, Numbers, 32) {
  const int lane = static_cast<int>(threadIdx.x);
  p.out[lane] = __shfl_sync(0xffffffff, lane, 1, 8);
  p.out[32 + lane] = __shfl_up_sync(0xffffffff, lane, 3, 8);
  p.out[64 + lane] = __shfl_down_sync(0xffffffff, int64_t{lane}, 3, 8);
  p.out[96 + lane] = __shfl_xor_sync(0xffffffff, lane, 1);
  // Each half of the warp shuffles on its own.
  const unsigned half = lane < 16 ? 0xffffu : 0xffff0000u;
  for (int i = 0; i < (lane < 16 ? 1 : 3); ++i)
    p.out[128 + lane] = __shfl_sync(half, lane, lane ^ 1);
  p.out[160 + lane] = lane == 31 ? 0 : __shfl_down_sync(0x7fffffff, lane, 1);
}

// Kernels that would hang on a GPU, or whose behaviour is undefined.

LS_CUDA_KERNEL(emulation_missed_barrier, Numbers, 64) {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else if (threadIdx.x < 32) {
    __syncwarp();
  }
}
LS_CUDA_KERNEL(emulation_two_barriers, Numbers, 64) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
LS_CUDA_KERNEL(emulation_missing_lanes, Numbers, 64) {
  if (threadIdx.x % 32 < 3) {
    p.out[0] = __shfl_xor_sync(0xffffffff, 1, 1);
  } else {
    p.out[0] = __ballot_sync(0xffffffff, 1);
  }
}
LS_CUDA_KERNEL(emulation_wrong_mask, Numbers, 64) { __syncwarp(0xffff); }
LS_CUDA_KERNEL(emulation_returned, Numbers, 64) {
  if (threadIdx.x % 2 == 1) return;
  __syncthreads();
  p.out[threadIdx.x] = __ballot_sync(0xffffffff, 1);
}
LS_CUDA_KERNEL(emulation_writes_behind, Numbers, 64) { dynamic_shared<char>()[threadIdx.x] = 1; }

/// Every thread reads its neighbour's value without a barrier.
LS_CUDA_KERNEL(emulation_forgot_barrier, Sum, 64) {
  __shared__ float values[64];
  values[threadIdx.x] = 1;
  p.out[threadIdx.x] = threadIdx.x == 0 ? 1 : values[threadIdx.x - 1];
}

class EmulatedGpu : public ::testing::Test {
 protected:
  EmulatedGpu() {
    CUcontext context = nullptr;
    driver.cuDevicePrimaryCtxRetain(&context, 0);
    driver.cuCtxSetCurrent(context);
    constexpr std::array<uint64_t, 1> kImage = {0xba55ed50u};
    driver.cuModuleLoadData(&module, kImage.data());
    stream = new_stream();
  }

  CUstream new_stream() {
    CUstream made = nullptr;
    driver.cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, 0);
    return made;
  }
  CUfunction function(const char* kernel) {
    CUfunction found = nullptr;
    EXPECT_EQ(driver.cuModuleGetFunction(&found, module, kernel), CUDA_SUCCESS) << kernel;
    return found;
  }
  template <class Parameters>
  CUresult launch(const char* kernel, dim3 blocks, dim3 threads, Parameters parameters,
                  unsigned shared_bytes = 0, CUstream on = nullptr) {
    void* arguments[] = {&parameters};
    return driver.cuLaunchKernel(function(kernel), blocks.x, blocks.y, blocks.z, threads.x,
                                 threads.y, threads.z, shared_bytes, on == nullptr ? stream : on,
                                 arguments, nullptr);
  }
  CUresult finish() { return driver.cuStreamSynchronize(stream); }
  /// The error reported for a kernel that fails.
  std::string error_of(const char* kernel, unsigned shared_bytes = 0) {
    std::vector<int64_t> out(64);
    EXPECT_EQ(launch(kernel, {2}, {64}, Numbers{out.data()}, shared_bytes), CUDA_SUCCESS);
    EXPECT_EQ(finish(), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(finish(), CUDA_ERROR_LAUNCH_FAILED) << "the device can do nothing more";
    return fake.kernel_error();
  }

  /// Each test sets the order it needs; the environment's value is restored afterwards.
  const EnvironmentVariable ascending{kOrder, nullptr};
  FakeDriver fake{1};
  Driver driver = fake.functions();
  CUmodule module = nullptr;
  CUstream stream = nullptr;
};

struct SumBy {
  const char* kernel;
  const char* order;
};
class SumOfABlock : public EmulatedGpu, public ::testing::WithParamInterface<SumBy> {};

TEST_P(SumOfABlock, IsThatOfItsNumbers) {
  // Includes the order that starts with the last thread.
  const EnvironmentVariable order(kOrder, GetParam().order);
  std::vector<float> in(3 * 256);
  std::iota(in.begin(), in.end(), 0.0f);
  std::vector<float> out(3);
  ASSERT_EQ(launch(GetParam().kernel, {3}, {256}, Sum{in.data(), out.data()}), CUDA_SUCCESS);
  EXPECT_THAT(out, Each(0.0f)) << "queued, not run";
  EXPECT_EQ(finish(), CUDA_SUCCESS);
  EXPECT_THAT(out, ElementsAre(255 * 128, 767 * 128, 1279 * 128));
}

INSTANTIATE_TEST_SUITE_P(By, SumOfABlock,
                         ::testing::Values(SumBy{"emulation_sum_by_shuffles", "ascending"},
                                           SumBy{"emulation_sum_by_shuffles", "descending"},
                                           SumBy{"emulation_sum_by_barriers", "ascending"},
                                           SumBy{"emulation_sum_by_barriers", "descending"}));

TEST_F(EmulatedGpu, DynamicSharedMemoryIsThatOfTheLaunch) {
  std::vector<float> in(1024);
  std::iota(in.begin(), in.end(), 0.0f);
  std::vector<float> out(1024);
  launch("emulation_turn_round", {1}, {1024}, Sum{in.data(), out.data()}, 4096);
  EXPECT_EQ(finish(), CUDA_SUCCESS);
  std::ranges::reverse(in);
  EXPECT_EQ(out, in);
}

TEST_F(EmulatedGpu, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int64_t> out(2 * 3 * 4 * 60);
  launch("emulation_places", {2, 3, 4}, {5, 4, 3}, Numbers{out.data()});
  EXPECT_EQ(finish(), CUDA_SUCCESS);
  std::vector<int64_t> expected(out.size());
  std::iota(expected.begin(), expected.end(), 1);
  EXPECT_EQ(out, expected);
}

TEST_F(EmulatedGpu, WhatNobodyWroteToSharedMemoryIsNan) {
  for (int i = 0; i < 2; ++i) {
    std::vector<float> out(3);
    launch("emulation_unwritten", {1}, {1}, Sum{nullptr, out.data()}, 32);
    EXPECT_EQ(finish(), CUDA_SUCCESS);
    for (const float value : out) EXPECT_TRUE(std::isnan(value)) << value;
  }
}

TEST_F(EmulatedGpu, AtomicsLoseNothing) {
  int integer = 0;
  std::array<unsigned, 3> natural = {0, 1000, 0};
  unsigned long long wide = 0;
  float real = 0;
  launch("emulation_atomics", {3}, {100}, Counters{&integer, natural.data(), &wide, &real});
  EXPECT_EQ(finish(), CUDA_SUCCESS);
  EXPECT_EQ(integer, -300);
  EXPECT_THAT(natural, ElementsAre(99, 5, 100));
  EXPECT_EQ(wide, 300ull << 32);
  EXPECT_EQ(real, 150.0f);
}

TEST_F(EmulatedGpu, VotesAreOfTheWarpAndOfTheBlock) {
  std::vector<int64_t> out(64);
  launch("emulation_votes", {1}, {64}, Numbers{out.data()});
  EXPECT_EQ(finish(), CUDA_SUCCESS);
  for (int i = 0; i < 64; ++i) {
    const int64_t any = i < 32 ? 0 : 1;
    const int64_t all = i < 32 ? 1 : 0;
    EXPECT_EQ(out[i], 0xaaaaaaaa + (any << 32) + (all << 33) + (int64_t{1} << 34)) << i;
  }
}

TEST_F(EmulatedGpu, ShufflesStayInTheirSegment) {
  std::vector<int64_t> out(192);
  launch("emulation_segments", {1}, {32}, Numbers{out.data()});
  EXPECT_EQ(finish(), CUDA_SUCCESS) << fake.kernel_error();
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(out[i], i / 8 * 8 + 1) << i;
    EXPECT_EQ(out[32 + i], i % 8 < 3 ? i : i - 3) << i;
    EXPECT_EQ(out[64 + i], i % 8 >= 5 ? i : i + 3) << i;
    EXPECT_EQ(out[96 + i], i ^ 1) << i;
    EXPECT_EQ(out[128 + i], i ^ 1) << i;
  }
  EXPECT_EQ(out[160 + 29], 30);
  EXPECT_EQ(out[160 + 30], -1) << "lane 31 is not there: a GPU gives anything";
}

TEST_F(EmulatedGpu, NobodyWaitsForThreadsThatHaveReturned) {
  std::vector<int64_t> out(64);
  launch("emulation_returned", {1}, {64}, Numbers{out.data()});
  EXPECT_EQ(finish(), CUDA_SUCCESS) << fake.kernel_error();
  EXPECT_EQ(out[0], 0x55555555);
  EXPECT_EQ(out[62], 0x55555555);
}

TEST_F(EmulatedGpu, ABarrierThatSomeThreadsMissIsReported) {
  EXPECT_THAT(
      error_of("emulation_missed_barrier"),
      AllOf(HasSubstr("kernel emulation_missed_barrier, block (0, 0, 0): threads wait for others"),
            HasSubstr("Threads 0-15: in __syncthreads"), HasSubstr("emulation_test.cc:"),
            HasSubstr("16-31: in __syncwarp"), HasSubstr("32-63: returned.")));
}

TEST_F(EmulatedGpu, ThreadsOfOneBlockInTwoBarriersAreReported) {
  EXPECT_THAT(error_of("emulation_two_barriers"),
              AllOf(HasSubstr("wait in different barriers"), HasSubstr("0-31: in __syncthreads")));
}

TEST_F(EmulatedGpu, TheOtherOrderShowsAForgottenBarrier) {
  std::vector<float> out(64);
  launch("emulation_forgot_barrier", {1}, {64}, Sum{nullptr, out.data()});
  EXPECT_EQ(finish(), CUDA_SUCCESS);
  EXPECT_THAT(out, Each(1.0f)) << "by chance";
  const EnvironmentVariable order(kOrder, "descending");
  launch("emulation_forgot_barrier", {1}, {64}, Sum{nullptr, out.data()});
  EXPECT_EQ(finish(), CUDA_SUCCESS);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_TRUE(std::isnan(out[1])) << out[1];
}

TEST_F(EmulatedGpu, LanesThatNeverComeAreReported) {
  EXPECT_THAT(error_of("emulation_missing_lanes"),
              AllOf(HasSubstr("0-2: in __shfl_xor_sync"), HasSubstr("3-31: in __ballot_sync"),
                    HasSubstr("for the lanes 0xffffffff")));
}

TEST_F(EmulatedGpu, AMaskWithoutTheCallerIsReported) {
  EXPECT_THAT(error_of("emulation_wrong_mask"),
              AllOf(HasSubstr("thread 16 calls __syncwarp"), HasSubstr("bit 16 in 0x0000ffff")));
}

TEST_F(EmulatedGpu, WritingBehindTheDynamicSharedMemoryIsReported) {
  std::vector<int64_t> out(64);
  launch("emulation_writes_behind", {1}, {64}, Numbers{out.data()}, 64);
  EXPECT_EQ(finish(), CUDA_SUCCESS);
  EXPECT_THAT(error_of("emulation_writes_behind", 63), HasSubstr("behind the 63 bytes"));
}

TEST_F(EmulatedGpu, LaunchesThatNoGpuTakesAreRefused) {
  const Numbers none{nullptr};
  const auto refused = [&](dim3 blocks, dim3 threads, const char* why) {
    EXPECT_EQ(launch("emulation_places", blocks, threads, none), CUDA_ERROR_INVALID_VALUE) << why;
    EXPECT_THAT(fake.misuse().back(), HasSubstr(why));
  };
  refused({1}, {65}, "threads in a block of at most 64");
  refused({1}, {0}, "threads in a block, at least 1");
  refused({0}, {1}, "blocks in each direction, at least 1");
  refused({1, 65536}, {1}, "blocks in y and z of at most 65535");
  refused({1, 1, 65536}, {1}, "blocks in y and z of at most 65535");
  EXPECT_EQ(launch("emulation_turn_round", {1}, {1025}, Sum{}), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(EmulatedGpu, MoreThan48KilobytesOfSharedMemoryMustBeAskedFor) {
  const Numbers none{nullptr};
  const CUfunction kernel = function("emulation_wrong_mask");
  const auto allow = [&](int bytes) {
    return driver.cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     bytes);
  };
  EXPECT_EQ(launch("emulation_wrong_mask", {1}, {1}, none, 48 << 10), CUDA_SUCCESS);
  EXPECT_EQ(launch("emulation_wrong_mask", {1}, {1}, none, 49 << 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(allow(227 << 10), CUDA_SUCCESS);
  EXPECT_EQ(launch("emulation_wrong_mask", {1}, {1}, none, 227 << 10), CUDA_SUCCESS);
  EXPECT_EQ(allow(228 << 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(finish(), CUDA_SUCCESS);
  int bound = 0;
  driver.cuFuncGetAttribute(&bound, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel);
  EXPECT_EQ(bound, 64);
}

TEST_F(EmulatedGpu, AKernelThatThereIsNotIsNotFound) {
  CUfunction found = nullptr;
  EXPECT_EQ(driver.cuModuleGetFunction(&found, module, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(EmulatedGpu, WorkOnTwoStreamsIsInTheOrderOfTheirEvents) {
  const CUstream other = new_stream();
  CUevent event = nullptr;
  driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  std::vector<int64_t> out(2, -1);
  launch("emulation_places", {1}, {2}, Numbers{out.data()});  // adds 1, 2
  driver.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(out.data()), 0, 16, other);
  driver.cuEventRecord(event, other);
  driver.cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_DEFAULT);
  launch("emulation_places", {1}, {2}, Numbers{out.data()});
  EXPECT_EQ(finish(), CUDA_SUCCESS);
  EXPECT_THAT(out, ElementsAre(1, 2));
  driver.cuEventDestroy(event);
  EXPECT_THAT(fake.misuse(), IsEmpty());
}

TEST(InstalledEmulation, ProgramsHaveCudaDevices) {
  EXPECT_EQ(device_count(DeviceType::kCUDA), 1);
  EXPECT_THAT(runtime().availability().devices, ElementsAre("Emulated GPU, 2.0 GiB"));
  EXPECT_THROW(set_driver_loader([] { return load_driver(); }), DeviceError);
}

TEST(InstalledEmulation, ARunOnItIsToldByItsLibrariesAndOneOnTheCpuIsNot) {
  const auto facts = [](Device device) {
    std::map<std::string, std::string> found;
    for (const ArithmeticFact& fact : arithmetic_facts(device)) found[fact.name] = fact.value;
    return found;
  };
  auto of_gpu = facts({DeviceType::kCUDA, 0});
  EXPECT_EQ(of_gpu["GPU"], "Emulated GPU");
  EXPECT_THAT(of_gpu["cuBLASLt"], MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_TRUE(of_gpu.contains("oneDNN"));
  EXPECT_FALSE(facts(kCPU).contains("cuBLASLt"));
}

}  // namespace
}  // namespace lockstep::cuda
