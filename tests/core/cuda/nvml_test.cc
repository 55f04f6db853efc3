#include "core/cuda/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lockstep::cuda {
namespace {

using ::testing::HasSubstr;

nvml::Result starts() { return nvml::Result::kSuccess; }
nvml::Result refuses() { return nvml::Result::kVersionMismatch; }
const char* says(nvml::Result) { return "what NVML says"; }

TEST(Nvml, LayoutsAreThoseOfItsHeader) {
  EXPECT_EQ(sizeof(nvml::Memory), 40U);
  EXPECT_EQ(nvml::Memory().version, 0x2000028U);
  EXPECT_EQ(sizeof(nvml::Process), 24U);
}

TEST(Nvml, OneWithoutAFunctionThatIsNeededIsRefused) {
  const LoadedNvml loaded = read_nvml("/a/b.so", [](const char*) -> void* { return nullptr; });
  EXPECT_THAT(loaded.reason, HasSubstr("/a/b.so has no nvmlInit_v2"));
}

TEST(Nvml, AnOlderOneIsUsedWithoutTheFunctionsThatItLacks) {
  const LoadedNvml loaded = read_nvml("/a/b.so", [](const std::string& name) -> void* {
    if (name == "nvmlInit_v2") return reinterpret_cast<void*>(&starts);
    const bool is_needed = name == "nvmlErrorString" || name == "nvmlSystemGetDriverVersion" ||
                           name.starts_with("nvmlDeviceGetHandleBy");
    return is_needed ? reinterpret_cast<void*>(&says) : nullptr;
  });
  EXPECT_EQ(loaded.reason, "");
  EXPECT_EQ(loaded.functions.nvmlDeviceGetEccMode, nullptr);
}

TEST(Nvml, OneThatCannotStartSaysWhy) {
  const LoadedNvml loaded = read_nvml("/a/b.so", [](const std::string& name) {
    return name == "nvmlInit_v2" ? reinterpret_cast<void*>(&refuses)
                                 : reinterpret_cast<void*>(&says);
  });
  EXPECT_EQ(loaded.reason, "/a/b.so: nvmlInit_v2 failed: what NVML says");
}

}  // namespace
}  // namespace lockstep::cuda
