#include "core/memory/address_space.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "core/base/error.h"
#include "core/memory/cpu_memory.h"
#include "core/memory/units.h"

namespace lockstep {
namespace {

constexpr size_t kGiB = 1024 * kMiB;

/// Lets this process map `bytes` more than it has.
void leave_addresses(size_t bytes) {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
  const rlimit both{limit, limit};
  ::setrlimit(RLIMIT_AS, &both);
}

/// Whether `require_addresses` refuses, with the name of who asked.
bool refuses(size_t bytes) {
  try {
    require_addresses(bytes, "the test");
    return false;
  } catch (const OutOfMemoryError& error) {
    const std::string expected =
        "[memory] the test needs " + std::to_string(bytes + 64 * kMiB) +
        " bytes of addresses, and the system refuses them: Cannot allocate memory. Raise the "
        "address space (ulimit -v) or the size of data (ulimit -d), or use fewer threads.";
    return std::string(error.what()).find(expected) != std::string::npos;
  }
}

TEST(AddressSpace, WithoutALimitNothingIsRefused) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &limit), 0);
  if (limit.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "the address space is limited";
  EXPECT_EQ(address_space_left(), SIZE_MAX);
  EXPECT_GE(cpu_memory_total(), static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)));
  EXPECT_TRUE(may_reserve_addresses(1024 * kGiB));
}

TEST(AddressSpace, UnderALimitWhatIsLeftIsGivenAndNoMore) {
  // The limit, of which the library asks once, is one of a process of its own.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        leave_addresses(kGiB);
        const size_t left = address_space_left();
        if (left > kGiB || left < kGiB - 64 * kMiB) _exit(1);
        if (!may_reserve_addresses(200 * kMiB) || may_reserve_addresses(300 * kMiB)) _exit(2);
        rlimit limit{};
        ::getrlimit(RLIMIT_AS, &limit);
        if (cpu_memory_total() > limit.rlim_cur / 2) _exit(7);
        if (refuses(256 * kMiB)) _exit(3);
        if (!refuses(kGiB + kMiB)) _exit(4);
        // Room for a thread's heap of 64 MiB is asked for as well.
        if (!refuses(kGiB - 32 * kMiB) || refuses(kGiB - 192 * kMiB)) _exit(5);
        // What was asked for is given back: the same is there again.
        for (int i = 0; i < 8; ++i) {
          if (refuses(512 * kMiB)) _exit(6);
        }
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lockstep
