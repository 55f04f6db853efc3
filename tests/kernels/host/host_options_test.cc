#include <gtest/gtest.h>

#include "core/device/device_runtime.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/host/host_work.h"

namespace lockstep {
namespace {

TEST(HostOptions, AreReadFromText) {
  const HostOptions options = parse_host_options(
      "devices:2,memory_mb:512,granule_kb:64,kernel_threads:3,concurrent_kernels:4,"
      "copy_latency_us:20,copy_gb_per_s:2.5,call_stacks:1",
      "test");
  EXPECT_EQ(options, (HostOptions{.devices = 2,
                                  .memory_budget = size_t{512} << 20,
                                  .granule = size_t{64} << 10,
                                  .kernel_threads = 3,
                                  .concurrent_kernels = 4,
                                  .copy_latency_us = 20,
                                  .copy_bandwidth = 2.5e9,
                                  .call_stacks = true}));
  EXPECT_EQ(parse_host_options("", "test"), HostOptions{});
  EXPECT_EQ(parse_host_options("devices:2", "test", options), options);
}

TEST(HostOptions, BadTextIsRefusedWithKeyAndAllowedValues) {
  const auto parse = [](std::string_view text) {
    return [=] { (void)parse_host_options(text, "LOCKSTEP_HOST"); };
  };
  expect_error<ConfigError>(parse("memory_gb:1"), "LOCKSTEP_HOST", "memory_gb", "copy_latency_us",
                            "Did you mean memory_mb?");
  expect_error<ConfigError>(parse("devices"), "devices", "1 to 16");
  expect_error<ConfigError>(parse("devices:17"), "\"17\"", "1 to 16");
  expect_error<ConfigError>(parse("devices:2x"), "\"2x\"");
  expect_error<ConfigError>(parse("granule_kb:3"), "power of two");
  expect_error<ConfigError>(parse("memory_mb:-1"), "memory_mb");
  expect_error<ConfigError>(parse("memory_mb:1e30"), "memory_mb");
  expect_error<ConfigError>(parse("copy_gb_per_s:nan"), "copy_gb_per_s");
  expect_error<ConfigError>(parse("copy_latency_us:inf"), "copy_latency_us");
  expect_error<ConfigError>(parse("call_stacks:yes"), "0 or 1");
  expect_error<ConfigError>(parse("devices:1,,"), "no option \"\"");
}

TEST(HostOptions, ChangeTheDevicesThatThereAre) {
  EXPECT_GE(device_count(DeviceType::kHost), 2);
  expect_error<ConfigError>([] { set_host_options({.devices = 0}); }, "devices");
  (void)require_runtime(kHost1).memory(1);
  expect_error<DeviceError>([] { set_host_options({.devices = 1}); }, "host:1");
  HostOptions options = host_options();
  options.granule *= 2;
  expect_error<DeviceError>([&] { set_host_options(options); }, "granules");
  DeviceMemory& memory = require_runtime(kHost1).memory(1);
  const size_t before = memory.total();
  {
    const HostOptionsGuard guard([](HostOptions& o) { o.memory_budget = size_t{3} << 20; });
    EXPECT_EQ(memory.total(), size_t{3} << 20);
  }
  EXPECT_EQ(memory.total(), before);
}

TEST(HostFaults, CallsAreCountedFromOne) {
  expect_error<ConfigError>([] { const HostFaultGuard guard(HostFault::kMap, 0); }, "from 1");
}

}  // namespace
}  // namespace lockstep
