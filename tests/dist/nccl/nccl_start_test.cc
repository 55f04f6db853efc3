// What ranks compare before NCCL starts, and what they say of their devices.

#include "dist/nccl/nccl_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "dist/rendezvous/socket.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/on_ranks.h"
#include "tests/dist/nccl/fake_nccl_job.h"

namespace lockstep::dist {
namespace {

/// Errors of three ranks, each with a device of this name and this version of NCCL.
std::vector<std::exception_ptr> start_errors(const FakeNccl& fake,
                                             const std::vector<std::string>& devices,
                                             const std::vector<int>& versions) {
  const auto library = fake.library();
  std::array<std::vector<nccl::UniqueId>, 3> ids;
  auto errors = run_thread_ranks(3, [&](ProcessGroup& group) {
    const auto rank = static_cast<size_t>(group.rank());
    NcclLibrary own = *library;
    own.version = versions[rank];
    ids[rank] = exchange_nccl_start(group, own, NcclDevice(kHostDevice, devices[rank]), 128, {});
  });
  if (!errors[0]) {
    for (const std::vector<nccl::UniqueId>& own : ids) {
      EXPECT_EQ(own.size(), 1U);
      EXPECT_EQ(std::memcmp(&own[0], &ids[0][0], sizeof own[0]), 0);
    }
    EXPECT_NE(ids[0][0].bytes[0], 0) << "rank 0's first";
  }
  return errors;
}

TEST(NcclStartExchange, GivesAllRanksTheIdentifierOfRank0) {
  const FakeNccl fake;
  expect_none(start_errors(fake, {"a", "bb", ""}, {22809, 22809, 22809}));
  EXPECT_EQ(fake.count("ncclGetUniqueId"), 1);
}

TEST(NcclStartExchange, VersionsThatDifferAreToldOnAllRanks) {
  const FakeNccl fake;
  for (const auto& error : start_errors(fake, {"a", "b", "c"}, {22809, 22809, 22703})) {
    ASSERT_TRUE(error);
    expect_error<BackendError>([&] { std::rethrow_exception(error); },
                               "[nccl] rank 2 has NCCL 2.27.3, rank 0 has 2.28.9: expected one "
                               "version on all ranks. Install the same one on all hosts.");
  }
}

TEST(NcclStartExchange, ADeviceOfTwoRanksIsDescribed) {
  const FakeNccl fake;
  for (const auto& error : start_errors(fake, {"a", "GPU 1", "GPU 1"}, {22809, 22809, 22809})) {
    ASSERT_TRUE(error);
    expect_error<BackendError>(
        [&] { std::rethrow_exception(error); },
        "[nccl] ranks 1 and 2 both use GPU 1 of host " + host_name() +
            " (host:0): NCCL needs a device of its own for each rank. Start no more ranks on a "
            "host than it has GPUs, and give each its own.");
  }
}

TEST(CompareNcclCalls, NamesRank0AndTheFirstRankThatDiffers) {
  const auto errors = run_thread_ranks(3, [](ProcessGroup& group) {
    compare_nccl_calls(group, "all_reduce", group.rank() == 0 ? "one" : "another", {});
  });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<MismatchError>(
        [&] { std::rethrow_exception(error); },
        "[all_reduce] ranks do not agree on an operation of group world: rank 0 called one, rank 1 "
        "called another. All ranks must call the same operations in the same order.");
  }
  all_ranks(2, [](ProcessGroup& group) { compare_nccl_calls(group, "barrier", "same", {}); });
}

TEST(NcclDevice, NamesItsMachineAndItself) {
  const NcclDevice device(kHostDevice);
  EXPECT_EQ(device.device(), kHostDevice);
  EXPECT_EQ(device.description(), "host:0 of host " + host_name());
  EXPECT_THAT(device.identity(), testing::EndsWith(" host:0"));
  EXPECT_EQ(device.identity(), NcclDevice(kHostDevice).identity());
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  if (std::getline(file, boot)) {
    EXPECT_EQ(device.identity(), boot + " host:0");
  }
  const NcclDevice::Scope scope(device);  // changes nothing on a device without a driver
}

TEST(NcclDevice, TakesANameForAllButTheDriversDevices) {
  const NcclDevice device(kHostDevice, "GPU 7");
  EXPECT_EQ(device.identity(), "GPU 7");
  EXPECT_EQ(device.description(), "GPU 7 of host " + host_name() + " (host:0)");
  expect_error<DeviceError>(
      [] {
        const NcclDevice other(Device{DeviceType::kCUDA, 0}, "GPU 7");
      },
      "[nccl] expected a device that is not the driver's to name, got cuda:0");
  EXPECT_THROW(NcclDevice(Device{DeviceType::kHost, 100}, "GPU 7"), DeviceError);
  EXPECT_THROW(NcclDevice(Device{DeviceType::kHost, 100}), DeviceError);
}

}  // namespace
}  // namespace lockstep::dist
