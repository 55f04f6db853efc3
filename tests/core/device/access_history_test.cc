#include "core/device/access_history.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace lockstep {
namespace {

constexpr size_t kBytes = 64;

const void* address(size_t offset) { return reinterpret_cast<const void*>(4096 + offset); }

MemoryUseRef use_of(size_t stream, uint64_t tick, bool written, size_t begin, size_t end) {
  MemoryUse use;
  use.stream = stream;
  use.tick = tick;
  use.written = written;
  use.footprint = Footprint(address(begin), end - begin);
  return std::make_shared<const MemoryUse>(use);
}

std::set<MemoryUseRef> uses_at(const AccessHistory& history, size_t byte) {
  std::set<MemoryUseRef> found;
  history.each_use(Footprint(address(byte), 1),
                   [&](const MemoryUseRef& use, uintptr_t begin, uintptr_t end) {
                     EXPECT_EQ(begin, 4096 + byte);
                     EXPECT_EQ(end, 4096 + byte + 1);
                     found.insert(use);
                     return false;
                   });
  return found;
}

RC_GTEST_PROP(AccessHistory, EveryByteHasTheUsesThatAByteOfItsOwnWouldHave, ()) {
  AccessHistory history;
  std::vector<std::vector<MemoryUseRef>> model(kBytes);
  std::vector<VectorClock> clocks(3);
  const int count = *rc::gen::inRange(1, 40);
  for (int i = 0; i < count; ++i) {
    const size_t stream = *rc::gen::inRange<size_t>(0, clocks.size());
    if (*rc::gen::inRange(0, 3) == 0) clocks[stream].join(clocks[*rc::gen::inRange<size_t>(0, 3)]);
    const size_t begin = *rc::gen::inRange<size_t>(0, kBytes);
    const size_t end = *rc::gen::inRange<size_t>(begin, kBytes + 1);
    const uint64_t tick = clocks[stream].tick(stream);
    const MemoryUseRef use = use_of(stream, tick, *rc::gen::arbitrary<bool>(), begin, end);
    history.add(use, clocks[stream]);
    for (size_t byte = begin; byte < end; ++byte) {
      std::erase_if(model[byte], [&](const MemoryUseRef& old) {
        return (use->written || !old->written) && old->happened_before(clocks[stream]);
      });
      model[byte].push_back(use);
    }
  }
  for (size_t byte = 0; byte < kBytes; ++byte) {
    const std::set<MemoryUseRef> expected(model[byte].begin(), model[byte].end());
    RC_ASSERT(uses_at(history, byte) == expected);
  }
  RC_ASSERT(history.size() <= kBytes);
}

TEST(AccessHistory, AWriteLeavesOneRange) {
  AccessHistory history;
  VectorClock clock;
  for (size_t begin = 0; begin < 60; begin += 5) {
    history.add(use_of(0, clock.tick(0), false, begin, begin + 3), clock);
  }
  EXPECT_EQ(history.size(), 12u);
  history.add(use_of(0, clock.tick(0), true, 0, 64), clock);
  EXPECT_EQ(history.size(), 1u);
}

TEST(AccessHistory, WhatIsKnownToBeDoneIsForgotten) {
  AccessHistory history;
  VectorClock clock;
  VectorClock done;
  const MemoryUseRef first = use_of(0, clock.tick(0), true, 0, 32);
  done.join(clock);
  history.add(first, clock);
  const MemoryUseRef second = use_of(0, clock.tick(0), false, 16, 48);
  history.add(second, clock);
  history.forget(done);
  EXPECT_TRUE(uses_at(history, 0).empty());
  EXPECT_EQ(uses_at(history, 20), std::set<MemoryUseRef>{second});
  history.forget(clock);
  EXPECT_EQ(history.size(), 0u);
}

TEST(AccessHistory, ManyStridedUsesOfOneRangeTakeBoundedMemory) {
  AccessHistory history;
  VectorClock clock;
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t sizes[] = {2, 1};
    const int64_t strides[] = {2000 + i, 1};
    TensorArg tensor;
    tensor.address = const_cast<void*>(address(0));
    tensor.size_data = sizes;
    tensor.stride_data = strides;
    tensor.rank = 2;
    tensor.numel = 2;
    tensor.dtype = DType::kU8;
    MemoryUse use;
    use.tick = clock.tick(0);
    use.written = true;
    use.footprint = Footprint(tensor);
    history.add(std::make_shared<const MemoryUse>(use), clock);
  }
  size_t kept = 0;
  history.each_use(Footprint(address(0), 1), [&](const MemoryUseRef&, uintptr_t, uintptr_t) {
    ++kept;
    return false;
  });
  EXPECT_LE(kept, 64u);
}

TEST(VectorClock, JoinTakesTheLaterOfEachStream) {
  VectorClock a;
  VectorClock b;
  a.tick(2);
  a.tick(2);
  b.tick(2);
  b.tick(5);
  a.join(b);
  EXPECT_EQ(a[2], 2u);
  EXPECT_EQ(a[5], 1u);
  EXPECT_EQ(a[9], 0u);
  EXPECT_EQ(a.tick(5), 2u);
}

}  // namespace
}  // namespace lockstep
