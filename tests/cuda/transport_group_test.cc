// Groups with tensors on a GPU whose ranks communicate through CPU memory.

#include "dist/group/transport_group.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "core/base/error.h"
#include "core/device/device_runtime.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/stream.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/gpu.h"
#include "tests/dist/group/group_conformance.h"
#include "tests/dist/group/on_ranks.h"
#include "tests/dist/nccl/fake_nccl_staging.h"

namespace lockstep::dist {
namespace {

class GroupOnOneGpu : public testing::TestWithParam<std::tuple<size_t, int>> {};

TEST_P(GroupOnOneGpu, DoesWhatGroupsMust) {
  const auto [index, size] = GetParam();
  all_ranks(size, [index = index](ProcessGroup& group) {
    const OwnedStream stream(kGpu);
    const StreamGuard guard(stream.get());
    const auto on_gpu = staged_group(group, kGpu);
    group_cases()[index].run(*on_gpu);
  });
}

INSTANTIATE_TEST_SUITE_P(Group, GroupOnOneGpu,
                         testing::Combine(testing::Range(size_t{0}, group_cases().size()),
                                          testing::Values(1, 2, 3)),
                         [](const auto& info) {
                           return std::string(group_cases()[std::get<0>(info.param)].name) + "By" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST(GroupOnGpus, SumsAreSeenByWhatIsQueuedNext) {
  all_ranks(2, [](ProcessGroup& group) {
    const OwnedStream stream(kGpu);
    const StreamGuard guard(stream.get());
    const Tensor values = empty({1000}, {DType::kF32, kCPU}).fill_(group.rank() + 1.0).to(kGpu);
    const Work work = group.all_reduce(values);
    work.wait();
    const Tensor twice = add(values, values);
    EXPECT_EQ(twice.to(kCPU).data<float>()[999], 6);
    work.synchronize();
    EXPECT_TRUE(work.is_completed());
  });
}

TEST(GroupOnGpus, ARankThatEndsIsTheOthersError) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    if (group.rank() == 1) throw DataError("no more data");
    const Tensor values = zeros({10}, {DType::kF32, kCPU}).to(kGpu);
    group.all_reduce(values).wait();
  });
  EXPECT_NE(text_of(errors[0]).find("rank 1"), std::string::npos) << text_of(errors[0]);
  EXPECT_EQ(text_of(errors[1]), "no more data");
}

}  // namespace
}  // namespace lockstep::dist
