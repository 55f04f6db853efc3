// Memory that is registered with NCCL.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "core/ops/factory/factory.h"
#include "dist/ddp/gradient_arena.h"
#include "dist/ddp/reducer.h"
#include "dist/nccl/nccl_group.h"
#include "tests/dist/ddp/layered_net.h"
#include "tests/dist/nccl/fake_nccl_job.h"

namespace lockstep::dist {
namespace {

using testing::IsEmpty;

/// A job whose groups have registered memory, and what they tell about it.
struct RegisteringJob {
  explicit RegisteringJob(int size) {
    job.size = size;
    job.options.user_buffers = true;
    job.options.on_no_buffers = [this](const std::string& reason) {
      const std::lock_guard guard(lock);
      told.push_back(reason);
    };
  }
  FakeNcclJob job{.size = 2};
  std::mutex lock;
  std::vector<std::string> told;
};

TEST(NcclRegistered, ArenasAreWindowsOfSymmetricMemory) {
  FakeNccl fake;
  RegisteringJob registering(2);
  all_nccl_ranks(fake, registering.job, [&](NcclGroup& group) {
    const GradientArena arena(1, 1000, DType::kF32, kHostDevice, &group);
    EXPECT_EQ(arena.bytes(), 4000);
    const Tensor part = arena.range(0, 100, 300);
    EXPECT_EQ(part.to(kCPU).data<float>()[199], 0) << "filled with zeros";
    part.fill_(1);
    group.barrier().synchronize();
    EXPECT_EQ(fake.windows(), 2);
    EXPECT_EQ(fake.blocks(), 2);
    group.all_reduce(part).wait();
    EXPECT_EQ(part.to(kCPU).data<float>()[0], 2);
    group.barrier().synchronize();
  });
  EXPECT_EQ(fake.windows(), 0);
  EXPECT_EQ(fake.count("ncclCommWindowDeregister"), 2);
  EXPECT_EQ(fake.count("ncclMemFree"), 2);
  EXPECT_EQ(fake.count("ncclCommRegister"), 0);
  EXPECT_THAT(registering.told, IsEmpty());
}

TEST(NcclRegistered, AnOlderLibraryRegistersBuffers) {
  FakeNccl fake;
  fake.version = 22105;
  fake.missing = {"ncclCommWindowRegister", "ncclCommWindowDeregister"};
  RegisteringJob registering(2);
  all_nccl_ranks(fake, registering.job, [&](NcclGroup& group) {
    const GradientArena arena(1, 1000, DType::kF32, kHostDevice, &group);
    group.barrier().synchronize();
    EXPECT_EQ(fake.buffers(), 2);
    group.barrier().synchronize();
  });
  EXPECT_EQ(fake.buffers(), 0);
  EXPECT_EQ(fake.count("ncclCommDeregister"), 2);
}

TEST(NcclRegistered, WhatOneRankCannotHaveNoRankHasAndRankZeroTellsOnce) {
  for (const char* function : {"ncclMemAlloc", "ncclCommWindowRegister"}) {
    FakeNccl fake;
    RegisteringJob registering(2);
    registering.job.before = [&](int rank) {
      if (rank == 0) fake.fail_next(function, nccl::Result::kInvalidUsage);
    };
    all_nccl_ranks(fake, registering.job, [&](NcclGroup& group) {
      for (int i = 0; i < 2; ++i) {
        const GradientArena arena(1, 1000, DType::kF32, kHostDevice, &group);
        const Tensor all = arena.range(0, 0, 1000).fill_(1);
        group.all_reduce(all).wait();
        EXPECT_EQ(all.to(kCPU).data<float>()[999], 2);
      }
    });
    ASSERT_EQ(registering.told.size(), 1u) << function;
    EXPECT_THAT(registering.told[0], testing::StartsWith("rank "));
    EXPECT_THAT(registering.told[0], testing::HasSubstr(std::string(function) + " failed"));
    EXPECT_EQ(fake.count("ncclMemAlloc"), 2) << "not asked for again";
  }
}

TEST(NcclRegistered, WithoutTheOptionMemoryIsTheAllocators) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    EXPECT_EQ(group.registered_memory(4096, kHostDevice), nullptr);
  });
  EXPECT_EQ(fake.count("ncclMemAlloc"), 0);
}

TEST(NcclRegistered, MemoryThatOutlivesItsGroupIsFreed) {
  FakeNccl fake;
  RegisteringJob registering(1);
  Ref<Storage> kept;
  all_nccl_ranks(fake, registering.job, [&](NcclGroup& group) {
    kept = group.registered_memory(4096, kHostDevice);
    ASSERT_NE(kept, nullptr);
  });
  EXPECT_EQ(fake.windows(), 0) << "it ended with the communicator";
  EXPECT_EQ(fake.blocks(), 1);
  kept = {};
  EXPECT_EQ(fake.blocks(), 0);
  EXPECT_EQ(fake.count("ncclCommWindowDeregister"), 0);
}

TEST(NcclRegistered, GradientsOfAReducerLieThere) {
  FakeNccl fake;
  RegisteringJob registering(2);
  all_nccl_ranks(fake, registering.job, [&](NcclGroup& group) {
    const LayeredNet net(kHostDevice);
    const ReducerOptions options;
    Reducer reducer(net.parameters, &group, options);
    for (int step = 0; step < 3; ++step) run_step(reducer, net, {0, 1});
    group.barrier().synchronize();
    EXPECT_EQ(fake.windows(), 2);
    group.barrier().synchronize();
  });
  EXPECT_GE(fake.count("ncclMemAlloc"), 2);
  EXPECT_EQ(fake.count("ncclMemFree"), fake.count("ncclMemAlloc"));
}

}  // namespace
}  // namespace lockstep::dist
