#include "core/tensor/device.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

TEST(Device, PrintsWhatItParses) {
  for (const char* text : {"cpu", "meta", "host:0", "host:7", "cuda:0", "cuda:15"}) {
    EXPECT_EQ(to_string(parse_device(text)), text);
  }
}

TEST(Device, ANumberedKindAloneMeansTheFirst) {
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceType::kCUDA, 0}));
  EXPECT_EQ(parse_device("host"), (Device{DeviceType::kHost, 0}));
}

TEST(Device, AKindAloneMeansTheProcessesOwn) {
  set_own_device({DeviceType::kCUDA, 3});
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceType::kCUDA, 3}));
  EXPECT_EQ(parse_device("cuda:1"), (Device{DeviceType::kCUDA, 1}));
  EXPECT_EQ(parse_device("host"), (Device{DeviceType::kHost, 0}));
  set_own_device({DeviceType::kCUDA, 0});
  expect_error<DeviceError>([] { set_own_device({DeviceType::kCPU, 1}); }, "cannot be");
  expect_error<DeviceError>([] { set_own_device({DeviceType::kCUDA, 16}); }, "below 16");
}

TEST(Device, RefusesEverythingElseAndSaysWhatIsAccepted) {
  for (const char* text : {"", "gpu", "cpu:0", "cuda:", "cuda:-1", "cuda:16", "cuda:1x", "meta:1",
                           "cuda:99999999999"}) {
    expect_error<DeviceError>([&] { parse_device(text); }, text, "cpu, meta, host:N or cuda:N");
  }
}

TEST(Device, TheNameOfASlotIsGivenUntilItIsTakenBack) {
  EXPECT_TRUE(given_device_names().empty());
  name_device_type(DeviceType::kPrivate4, "attic");
  EXPECT_EQ(given_device_names(), std::vector<std::string>{"attic"});
  EXPECT_EQ(parse_device("attic:2"), (Device{DeviceType::kPrivate4, 2}));
  name_device_type(DeviceType::kPrivate4, "");
  EXPECT_TRUE(given_device_names().empty());
}

TEST(Device, ADefaultLastsAsLongAsItsGuardAndForItsThreadAlone) {
  EXPECT_EQ(default_device(), kCPU);
  {
    const DefaultDeviceGuard outer(kMeta);
    EXPECT_EQ(default_device(), kMeta);
    {
      const DefaultDeviceGuard inner(kCPU);
      EXPECT_EQ(default_device(), kCPU);
    }
    EXPECT_EQ(default_device(), kMeta);
    std::thread([] { EXPECT_EQ(default_device(), kCPU); }).join();
  }
  EXPECT_EQ(default_device(), kCPU);
}

}  // namespace
}  // namespace lockstep
