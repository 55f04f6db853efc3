// Tests that need real NCCL: one rank on each available GPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/cuda/availability.h"
#include "core/device/device_runtime.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/stream.h"
#include "dist/group/thread_group.h"
#include "dist/nccl/nccl_group.h"
#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

/// Loads NCCL. Returns null if there is none, with the reason in `why`.
std::shared_ptr<const NcclLibrary> find_nccl(std::string& why) {
  try {
    return load_nccl();
  } catch (const BackendError& error) {
    why = error.what();
    return nullptr;
  }
}

/// Runs `body` on one rank per entry of `devices`, and expects no error.
void on_gpus(const std::shared_ptr<const NcclLibrary>& library, const std::vector<Device>& devices,
             const std::function<void(NcclGroup&, Device)>& body) {
  auto communicators = thread_communicators(static_cast<int>(devices.size()));
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto group = nccl_group(std::move(communicators[rank]), library,
                                      std::make_shared<NcclDevice>(devices[rank]));
        body(*group, devices[rank]);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class NcclOnGpus : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = cuda::availability().reason;
    if (!reason.empty()) GTEST_SKIP() << "no GPU: " << reason;
    std::string why;
    library_ = find_nccl(why);
    if (library_ == nullptr) GTEST_SKIP() << why;
    const int count = std::min(device_count(DeviceType::kCUDA), 8);
    for (int i = 0; i < count; ++i) devices_.push_back({DeviceType::kCUDA, static_cast<int8_t>(i)});
  }

  std::shared_ptr<const NcclLibrary> library_;
  std::vector<Device> devices_;
};

/// A tensor of `count` times `value`, filled on the CPU so that no device kernel is needed.
Tensor filled(int64_t count, float value, Device device) {
  return empty({count}, {DType::kF32, kCPU}).fill_(value).to(device);
}

TEST_F(NcclOnGpus, SumsGathersAndBroadcasts) {
  on_gpus(library_, devices_, [](NcclGroup& group, Device device) {
    const int n = group.size();
    const auto rank = static_cast<float>(group.rank());
    for (const int64_t count : {int64_t{1}, int64_t{1000}, int64_t{5'000'000}}) {
      const Tensor sum = filled(count, rank + 1, device);
      group.all_reduce(sum).wait();
      const Tensor here = sum.to(kCPU);
      EXPECT_EQ(here.data<float>()[count - 1], static_cast<float>(n * (n + 1) / 2));

      const Tensor whole = filled(count * n, -1, device);
      group.all_gather(whole, filled(count, rank, device)).wait();
      const Tensor parts = whole.to(kCPU);
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(parts.data<float>()[i * count], static_cast<float>(i));
      }
      const Tensor copy = filled(count, rank, device);
      group.broadcast(copy, n - 1).wait();
      EXPECT_EQ(copy.to(kCPU).data<float>()[0], static_cast<float>(n - 1));
    }
    group.barrier().wait();
  });
}

TEST_F(NcclOnGpus, PremultipliedSumsMultiplyEveryValue) {
  on_gpus(library_, devices_, [](NcclGroup& group, Device device) {
    const Tensor sum = filled(100, 3, device);
    group.all_reduce(sum, {ReduceOp::kPremultipliedSum, 0.5}).wait();
    EXPECT_EQ(sum.to(kCPU).data<float>()[99], 1.5f * static_cast<float>(group.size()));
  });
}

TEST_F(NcclOnGpus, RegisteredBuffersAreUsed) {
  on_gpus(library_, devices_, [](NcclGroup& group, Device device) {
    const Tensor sum = filled(1 << 20, 1, device);
    const NcclBuffer buffer = group.register_buffer(sum);
    group.all_reduce(sum).wait();
    EXPECT_EQ(sum.to(kCPU).data<float>()[7], static_cast<float>(group.size()));
  });
}

TEST_F(NcclOnGpus, MessagesAndSubgroups) {
  if (devices_.size() < 2) GTEST_SKIP() << "there is one GPU";
  on_gpus(library_, devices_, [](NcclGroup& group, Device device) {
    const int n = group.size();
    const Tensor incoming = filled(1000, -1, device);
    const Work sent = group.send(filled(1000, static_cast<float>(group.rank()), device),
                                 (group.rank() + 1) % n, 5);
    group.recv(incoming, (group.rank() + n - 1) % n, 5).wait();
    sent.wait();
    EXPECT_EQ(incoming.to(kCPU).data<float>()[999], static_cast<float>((group.rank() + n - 1) % n));
    const auto pair = group.subgroup({1, 0}, "pair");
    if (pair == nullptr) return;
    const Tensor sum = filled(10, 1, device);
    pair->all_reduce(sum).wait();
    EXPECT_EQ(sum.to(kCPU).data<float>()[0], 2);
  });
}

TEST_F(NcclOnGpus, TwoRanksOnOneAreRefused) {
  auto communicators = thread_communicators(2);
  const auto device = std::make_shared<NcclDevice>(devices_[0]);
  std::vector<std::thread> threads;
  for (auto& communicator : communicators) {
    threads.emplace_back([&] {
      expect_error<BackendError>(
          [&] { (void)nccl_group(std::move(communicator), library_, device); },
          "ranks 0 and 1 both use GPU");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(NcclWithoutGpu, TheErrorIsNcclsOwn) {
  if (cuda::availability().reason.empty()) GTEST_SKIP() << "there is a GPU";
  std::string why;
  const auto library = find_nccl(why);
  if (library == nullptr) GTEST_SKIP() << why;
  auto communicators = thread_communicators(1);
  expect_error<BackendError>(
      [&] {
        (void)nccl_group(std::move(communicators[0]), library,
                         std::make_shared<NcclDevice>(parse_device("host:0"), "none"),
                         {.start_timeout = std::chrono::seconds(20)});
      },
      "ncclCommInitRankConfig failed", library->file, nccl_version_text(library->version));
}

}  // namespace
}  // namespace lockstep::dist
