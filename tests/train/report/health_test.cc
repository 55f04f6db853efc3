#include "train/report/health.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

/// A fake root folder that describes a healthy machine, until a test changes it.
class HealthTest : public testing::Test {
 protected:
  HealthTest() {
    put("etc/os-release", "PRETTY_NAME=\"Debian\"\n");
    put("proc/cpuinfo", "model name : A CPU\nflags : fma sse4_2 avx f16c avx2 bmi2\n");
    put("proc/meminfo", "MemTotal:       16000000 kB\n");
    limits("1024", "8388608", "unlimited");
    put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    std::filesystem::create_directories(root_ / "dev/shm");
  }

  void put(std::string_view name, std::string_view content) {
    std::filesystem::create_directories((root_ / name).parent_path());
    put_file(root_ / name, content);
  }
  void limits(const std::string& files, const std::string& stack, const std::string& size) {
    put("proc/self/limits",
        "Limit                     Soft Limit           Hard Limit   Units\n"
        "Max open files            " +
            files +
            "   9999   files\n"
            "Max stack size            " +
            stack +
            "   unlimited   bytes\n"
            "Max locked memory         65536    65536    bytes\n"
            "Max file size             " +
            size + "   unlimited   bytes\n");
  }

  Check check(const std::string& subject) {
    for (const Check& check : examine_machine(options_)) {
      if (check.subject == subject) return check;
    }
    ADD_FAILURE() << "no line about " << subject;
    return {};
  }

  TemporaryDirectory root_;
  HealthOptions options_{.run_folder = root_ / "some/runs", .threads = 1, .root = root_.path()};
};

TEST_F(HealthTest, AHealthyMachineHasNothingToFail) {
  for (const Check& check : examine_machine(options_)) {
    EXPECT_NE(check.health, Health::kFail) << check.subject << ": " << check.advice;
  }
  EXPECT_EQ(check("memory").found, "15.3 GiB allowed");
  EXPECT_EQ(check("processor").found, "A CPU (fma sse4_2 avx f16c avx2 bmi2)");
  EXPECT_EQ(check("huge pages").found, "madvise");
  EXPECT_EQ(check("open files").found, "1024");
  EXPECT_EQ(check("stack").found, "8.0 MiB");
  EXPECT_EQ(check("locked memory").found, "64.0 KiB");
  EXPECT_EQ(check("file size").found, "unlimited");
  EXPECT_TRUE(says(check("run folder").found, "some/runs, "));
}

TEST_F(HealthTest, AProcessorWithoutTheBaselineFails) {
  put("proc/cpuinfo", "model name : Old\nflags : sse4_2 avx\n");
  EXPECT_EQ(check("processor").health, Health::kFail);
  EXPECT_TRUE(says(check("processor").advice, "x86-64-v3"));
}

TEST_F(HealthTest, TooLittleMemoryFails) {
  put("proc/meminfo", "MemTotal:       32000 kB\n");
  EXPECT_EQ(check("memory").health, Health::kFail);
  put("proc/meminfo", "MemTotal:       512000 kB\n");
  EXPECT_EQ(check("memory").health, Health::kWarn);
}

TEST_F(HealthTest, MoreThreadsThanCoresAreNoted) {
  options_.threads = 100000;
  EXPECT_EQ(check("cores").health, Health::kWarn);
  EXPECT_TRUE(says(check("cores").advice, "set threads: "));
}

TEST_F(HealthTest, LimitsWarnAndThenFail) {
  limits("256", "262144", "1073741824");
  EXPECT_EQ(check("open files").health, Health::kWarn);
  EXPECT_EQ(check("stack").health, Health::kWarn);
  EXPECT_EQ(check("file size").health, Health::kWarn);
  limits("8", "65536", "4096");
  EXPECT_EQ(check("open files").health, Health::kFail);
  EXPECT_EQ(check("stack").health, Health::kFail);
  EXPECT_EQ(check("file size").health, Health::kFail);
}

TEST_F(HealthTest, ARunFolderThatCannotBeMadeFails) {
  put("a_file", "");
  options_.run_folder = root_ / "a_file/runs";
  EXPECT_EQ(check("run folder").health, Health::kFail);
  EXPECT_TRUE(says(check("run folder").advice, "a_file"));
}

TEST_F(HealthTest, AReadOnlyRunFolderFails) {
  options_.run_folder = "/proc/runs";
  EXPECT_EQ(check("run folder").health, Health::kFail);
  EXPECT_FALSE(check("run folder").advice.empty());
}

TEST_F(HealthTest, MissingSharedMemoryAndHugePagesAreNoted) {
  std::filesystem::remove_all(root_ / "dev");
  put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  EXPECT_EQ(check("/dev/shm").health, Health::kWarn);
  EXPECT_EQ(check("huge pages").health, Health::kWarn);
}

TEST_F(HealthTest, LimitsAreThoseOfTheProcess) {
  EXPECT_EQ(process_limit("Max open files", root_.path()), 1024);
  EXPECT_EQ(process_limit("Max file size", root_.path()), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(process_limit("Max cpu time", root_.path()), -1);
  EXPECT_GT(process_limit("Max open files"), 0);
}

TEST_F(HealthTest, LibrariesAreNamedWithTheirVersions) {
  put("proc/self/maps",
      "7f00-7f01 r-xp 00000000 fe:00 1 /usr/lib/libprotobuf.so.32.0.12\n"
      "7f02-7f03 r-xp 00000000 fe:00 1 /usr/lib/libprotobuf.so.32.0.12\n"
      "7f04-7f05 r-xp 00000000 fe:00 1 /usr/lib/libc.so.6\n"
      "7f06-7f07 r-xp 00000000 fe:00 1 /opt/lib/libfoo-bar-1.2.so\n"
      "7f08-7f09 r-xp 00000000 fe:00 1 /opt/lib/liblockstep.so\n"
      "7f0a-7f0b rw-p 00000000 00:00 0 [heap]\n");
  EXPECT_EQ(loaded_libraries(root_.path()),
            (std::map<std::string, std::string>{{"foo-bar", "1.2"}, {"protobuf", "32.0.12"}}));
}

TEST_F(HealthTest, LimitsCountFromTheirBoundaries) {
  const auto health = [&](const std::string& subject, const std::string& files,
                          const std::string& stack, const std::string& size) {
    limits(files, stack, size);
    return check(subject).health;
  };
  EXPECT_EQ(health("open files", "1024", "8388608", "unlimited"), Health::kOk);
  EXPECT_EQ(health("open files", "1023", "8388608", "unlimited"), Health::kWarn);
  EXPECT_EQ(health("open files", "32", "8388608", "unlimited"), Health::kWarn);
  EXPECT_EQ(health("open files", "31", "8388608", "unlimited"), Health::kFail);
  EXPECT_EQ(check("open files").advice, "Data shards and ranks need many: ulimit -n 4096.");
  EXPECT_EQ(health("stack", "1024", "1048576", "unlimited"), Health::kOk);
  EXPECT_EQ(health("stack", "1024", "1048575", "unlimited"), Health::kWarn);
  EXPECT_EQ(health("stack", "1024", "131072", "unlimited"), Health::kWarn);
  EXPECT_EQ(health("stack", "1024", "131071", "unlimited"), Health::kFail);
  EXPECT_EQ(health("file size", "1024", "8388608", "1048576"), Health::kWarn);
  EXPECT_EQ(health("file size", "1024", "8388608", "1048575"), Health::kFail);
  EXPECT_EQ(check("file size").found, "1.0 MiB");
}

TEST_F(HealthTest, MemoryCountsFromItsBoundaries) {
  const auto health = [&](int64_t kibibytes) {
    put("proc/meminfo", fmt::format("MemTotal: {} kB\n", kibibytes));
    return check("memory").health;
  };
  EXPECT_EQ(health(1 << 20), Health::kOk);
  EXPECT_EQ(check("memory").advice, "");
  EXPECT_EQ(health((1 << 20) - 1), Health::kWarn);
  EXPECT_EQ(check("memory").advice, "Only small models fit.");
  EXPECT_EQ(health(64 << 10), Health::kWarn);
  EXPECT_EQ(health((64 << 10) - 1), Health::kFail);
  EXPECT_EQ(check("memory").advice, "Too little for any model. Raise the control group's limit.");
}

TEST_F(HealthTest, ThreadsMayBeAsManyAsCores) {
  EXPECT_EQ(check("cores").health, Health::kOk);
  EXPECT_TRUE(check("cores").found.ends_with(" allowed, 1 kernel thread"));
  options_.threads = 2;
  EXPECT_TRUE(check("cores").found.ends_with(" allowed, 2 kernel threads"));
  const int allowed = std::stoi(check("cores").found);
  options_.threads = allowed;
  EXPECT_EQ(check("cores").health, Health::kOk);
  options_.threads = allowed + 1;
  EXPECT_EQ(check("cores").health, Health::kWarn);
  EXPECT_EQ(check("cores").advice,
            fmt::format("More threads than cores wait for each other: set threads: {}.", allowed));
}

TEST_F(HealthTest, EachFeatureOfTheBaselineIsNeeded) {
  for (const std::string lacking : {"avx2", "fma", "bmi2", "f16c"}) {
    std::string flags = "flags : sse4_2";
    for (const std::string each : {"avx2", "fma", "bmi2", "f16c"}) {
      if (each != lacking) flags += " " + each;
    }
    put("proc/cpuinfo", flags + "\n");
    EXPECT_EQ(check("processor").health, Health::kFail) << lacking;
    EXPECT_EQ(
        check("processor").advice,
        fmt::format("It lacks {}, which this build uses. Use an x86-64-v3 processor.", lacking));
  }
  put("proc/cpuinfo", "");
  EXPECT_EQ(check("processor").health, Health::kOk) << "nothing is known of it";
}

TEST_F(HealthTest, WhatTheSystemDoesNotTellIsLeftOut) {
  const auto subjects = [&] {
    std::vector<std::string> found;
    for (const Check& each : examine_machine(options_)) found.push_back(each.subject);
    return fmt::format("{}", fmt::join(found, ", "));
  };
  EXPECT_EQ(subjects(),
            "system, processor, cores, memory, open files, stack, locked memory, file size, run "
            "folder, /dev/shm, huge pages");
  put("etc/os-release", "");
  put("proc/self/limits", "Max stack size 1 2 bytes\n");
  put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise\n");
  EXPECT_EQ(subjects(), "processor, cores, memory, stack, run folder, /dev/shm");
}

TEST_F(HealthTest, ALibraryWithoutAVersionIsNotNamed) {
  put("proc/self/maps",
      "1 /l/libx.so\n2 /l/liby-.so\n3 /l/libz-a.so\n4 /l/w.so.1\n5 /l/libv.so.\n"
      "6 /l/libu.txt\n7 /l/libt.so.2\n8 /l/libs-9.so\n9 /l/libm.so.6\n");
  EXPECT_EQ(loaded_libraries(root_.path()),
            (std::map<std::string, std::string>{{"s", "9"}, {"t", "2"}}));
}

}  // namespace
}  // namespace lockstep::train
