#include "train/report/machine.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

class MachineTest : public testing::Test {
 protected:
  void put(std::string_view name, std::string_view content) {
    std::filesystem::create_directories((root_ / name).parent_path());
    put_file(root_ / name, content);
  }
  std::filesystem::path root() const { return root_.path(); }
  TemporaryDirectory root_;
};

TEST_F(MachineTest, ProcessorAndSystemAreReadFromTheKernelsFiles) {
  put("proc/cpuinfo",
      "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu avx avx2 fma sse amx_bf16\n");
  put("etc/os-release", "NAME=\"X\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  EXPECT_EQ(cpu_model(root()), "Some CPU @ 2 GHz");
  EXPECT_EQ(isa_features(root()), (std::vector<std::string>{"avx", "avx2", "fma", "amx_bf16"}));
  EXPECT_EQ(operating_system(root()), "Debian GNU/Linux 12 (bookworm)");
}

TEST_F(MachineTest, WhatIsNotToldIsEmpty) {
  EXPECT_EQ(cpu_model(root()), "");
  EXPECT_TRUE(isa_features(root()).empty());
  EXPECT_EQ(operating_system(root()), "");
  EXPECT_EQ(memory_allowed(root()), 0u);
  EXPECT_EQ(cores_allowed(root()), static_cast<int>(std::thread::hardware_concurrency()));
}

TEST_F(MachineTest, TheTightestGroupOfVersion2Counts) {
  put("proc/meminfo", "MemTotal:       16000 kB\nMemFree: 1 kB\n");
  put("proc/self/cgroup", "0::/jobs/one\n");
  EXPECT_EQ(memory_allowed(root()), 16000u * 1024);
  put("sys/fs/cgroup/jobs/one/memory.max", "max\n");
  put("sys/fs/cgroup/jobs/memory.max", "4096000\n");
  put("sys/fs/cgroup/jobs/one/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/jobs/cpu.max", "50000 100000\n");
  EXPECT_EQ(memory_allowed(root()), 4096000u);
  EXPECT_EQ(cores_allowed(root()), 1);
  put("sys/fs/cgroup/jobs/memory.max", "0\n");
  EXPECT_EQ(memory_allowed(root()), 0u) << "nothing is allowed, too, is a limit";
}

TEST_F(MachineTest, Version1AndContainersCount) {
  put("proc/meminfo", "MemTotal:       16000 kB\n");
  put("proc/self/cgroup", "4:memory:/outside/of/here\n3:cpuset:/\n2:cpu,cpuacct:/\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "8192000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "90000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(memory_allowed(root()), 8192000u);
  EXPECT_EQ(cores_allowed(root()), 1);
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(memory_allowed(root()), 16000u * 1024);
  EXPECT_EQ(cores_allowed(root()), static_cast<int>(std::thread::hardware_concurrency()));
}

TEST_F(MachineTest, AThreadsWaitForACoreIsInSeconds) {
  EXPECT_FALSE(core_wait_seconds(root()));
  put("proc/thread-self/schedstat", "5000000000 250000000 17\n");
  EXPECT_EQ(core_wait_seconds(root()), 0.25);
  put("proc/thread-self/schedstat", "no numbers\n");
  EXPECT_FALSE(core_wait_seconds(root()));
}

TEST_F(MachineTest, EveryFeatureThatKernelsMayUseIsNamed) {
  const std::vector<std::string> all = {"sse4_2",   "avx",      "f16c",        "fma",
                                        "avx2",     "bmi2",     "avx512f",     "avx512bw",
                                        "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16",
                                        "avx_vnni", "amx_tile", "avx512_fp16", "amx_bf16"};
  put("proc/cpuinfo", fmt::format("flags : fpu {} sse5\n", fmt::join(all, " mmx ")));
  EXPECT_EQ(isa_features(root()), all);
}

TEST_F(MachineTest, MemoryIsLimitedByWhatIsBelowTheMachines) {
  put("proc/meminfo", "MemTotal:       1 kB\n");
  put("proc/self/cgroup", "0::/one\n");
  for (const auto& [limit, allowed] : {std::pair("1023", 1023u),
                                       {"1024", 1024u},
                                       {"1025", 1024u},
                                       {"-1", 1024u},
                                       {"many", 1024u}}) {
    put("sys/fs/cgroup/one/memory.max", limit);
    EXPECT_EQ(memory_allowed(root()), allowed) << limit;
  }
}

}  // namespace
}  // namespace lockstep::train
