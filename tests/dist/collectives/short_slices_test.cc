#include "dist/collectives/short_slices.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <thread>

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

/// Scheduler slice of the calling thread in ns, or 0 if the kernel has no slice per thread.
uint64_t slice() {
  // sched_runtime, a 64-bit field, is words 6 and 7 of `struct sched_attr`.
  std::array<uint32_t, 12> attributes{};
  if (syscall(SYS_sched_getattr, 0, attributes.data(), sizeof attributes, 0) != 0) return 0;
  return attributes[6] | uint64_t{attributes[7]} << 32;
}

TEST(ShortSlices, ChangeTheThreadsSliceAndNothingElse) {
  const uint64_t before = slice();
  std::thread([&] {
    const int nice = getpriority(PRIO_PROCESS, 0);
    const bool taken = ask_for_short_slices(300us);
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    EXPECT_EQ(getpriority(PRIO_PROCESS, 0), nice);
    // Older kernels accept the call but keep the slice.
    EXPECT_TRUE(!taken || slice() == 300'000 || slice() == before) << slice();
  }).join();
  EXPECT_EQ(slice(), before) << "other threads keep theirs";
}

TEST(ShortSlices, AThreadOfAnotherPolicyIsLeftAlone) {
  std::thread([] {
    const sched_param none{};
    ASSERT_EQ(sched_setscheduler(0, SCHED_BATCH, &none), 0);
    EXPECT_FALSE(ask_for_short_slices(300us));
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
  }).join();
}

}  // namespace
}  // namespace lockstep::dist
