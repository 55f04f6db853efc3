#include "core/tensor/dispatch_key.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <thread>

namespace lockstep {
namespace {

TEST(KeySet, OrdersKeysFromTheUserInwards) {
  // docs/dispatch.md: FunctionMode > Functionalize > Vmap > Autocast > Autograd > DispatchMode >
  // backends.
  KeySet keys = KeySet::all();
  for (Key key : {Key::kObserver, Key::kFunctionMode, Key::kFunctionalize, Key::kVmap,
                  Key::kAutocast, Key::kAutograd, Key::kDispatchMode}) {
    EXPECT_EQ(keys.highest(), key);
    keys = keys - key;
  }
  EXPECT_EQ(keys, KeySet::backends());
}

RC_GTEST_PROP(KeySet, IsASetOfKeys, (uint64_t x, uint64_t y)) {
  const KeySet a = KeySet::from_bits(x) & KeySet::all();
  const KeySet b = KeySet::from_bits(y) & KeySet::all();
  for (int i = 0; i < kKeyCount; ++i) {
    const Key key = static_cast<Key>(i);
    RC_ASSERT((a | b).has(key) == (a.has(key) || b.has(key)));
    RC_ASSERT((a & b).has(key) == (a.has(key) && b.has(key)));
    RC_ASSERT((a - b).has(key) == (a.has(key) && !b.has(key)));
    RC_ASSERT(KeySet::below(key).has(key) == false);
  }
  RC_PRE(!a.empty());
  RC_ASSERT(a.has(a.highest()));
  RC_ASSERT(((a & KeySet::below(a.highest())) | a.highest()) == a);
}

TEST(KeySet, PrintsOutermostFirst) {
  EXPECT_EQ(to_string(KeySet(Key::kCPU) | Key::kAutograd), "{Autograd, CPU}");
  EXPECT_EQ(to_string(KeySet()), "{}");
}

TEST(KeySet, DeviceTypesAndBackendKeysAreInTheSameOrder) {
  EXPECT_EQ(backend_key(DeviceType::kCPU), Key::kCPU);
  EXPECT_EQ(backend_key(DeviceType::kHost), Key::kHost);
  EXPECT_EQ(backend_key(DeviceType::kCUDA), Key::kCUDA);
  EXPECT_EQ(backend_key(DeviceType::kMeta), Key::kMeta);
}

TEST(KeyGuards, NestAndRestore) {
  const auto included = [] { return detail::thread_keys.included; };
  const KeySet before = included();
  {
    const IncludeKeys outer(Key::kAutocast);
    {
      const IncludeKeys inner(KeySet(Key::kAutocast) | Key::kVmap);
      EXPECT_TRUE(included().has(Key::kVmap));
    }
    EXPECT_TRUE(included().has(Key::kAutocast)) << "the inner guard must not take the outer's key";
    EXPECT_FALSE(included().has(Key::kVmap));
  }
  EXPECT_EQ(included(), before);
}

TEST(KeyGuards, AreRestoredByExceptions) {
  const KeySet before = detail::thread_keys.excluded;
  try {
    const ExcludeKeys guard(Key::kAutograd);
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(detail::thread_keys.excluded, before);
}

TEST(KeyGuards, BelongToOneThread) {
  const IncludeKeys include(Key::kAutocast);
  const ExcludeKeys exclude(Key::kAutograd);
  std::thread([] {
    EXPECT_TRUE(detail::thread_keys.included.empty());
    EXPECT_TRUE(detail::thread_keys.excluded.empty());
  }).join();
}

}  // namespace
}  // namespace lockstep
