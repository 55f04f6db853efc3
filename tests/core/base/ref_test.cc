#include "core/base/ref.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace lockstep {
namespace {

struct Base : RefCounted {
  explicit Base(int* d) : destroyed(d) {}
  virtual ~Base() { ++*destroyed; }
  int* destroyed;
};
struct Derived : Base {
  using Base::Base;
};

TEST(Ref, StartsWithOneReferenceAndDestroysWithTheLast) {
  int destroyed = 0;
  {
    const Ref<Base> a = make_ref<Base>(&destroyed);
    EXPECT_EQ(a->use_count(), 1u);
    {
      const Ref<Base> b = a;
      EXPECT_EQ(a->use_count(), 2u);
      EXPECT_EQ(a, b);
    }
    EXPECT_EQ(a->use_count(), 1u);
    EXPECT_EQ(destroyed, 0);
  }
  EXPECT_EQ(destroyed, 1);
}

TEST(Ref, MovingLeavesTheSourceEmptyAndTheCountAlone) {
  int destroyed = 0;
  Ref<Base> a = make_ref<Base>(&destroyed);
  const Ref<Base> b = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_EQ(b->use_count(), 1u);
}

TEST(Ref, AssignmentReleasesWhatItHeldAlsoOntoItself) {
  int first = 0;
  int second = 0;
  Ref<Base> a = make_ref<Base>(&first);
  a = make_ref<Base>(&second);
  EXPECT_EQ(first, 1);
  const Ref<Base>& same = a;
  a = same;
  EXPECT_EQ(a->use_count(), 1u);
  EXPECT_EQ(second, 0);
  a = nullptr;
  EXPECT_EQ(second, 1);
}

TEST(Ref, ConvertsToTheBaseAndKeepsTheCount) {
  int destroyed = 0;
  {
    const Ref<Derived> derived = make_ref<Derived>(&destroyed);
    const Ref<Base> base = derived;
    EXPECT_EQ(derived->use_count(), 2u);
  }
  EXPECT_EQ(destroyed, 1);
}

TEST(Ref, DetachGivesTheReferenceUpAndAdoptTakesItBack) {
  int destroyed = 0;
  Base* raw = make_ref<Base>(&destroyed).detach();
  EXPECT_EQ(raw->use_count(), 1u);
  EXPECT_EQ(destroyed, 0);
  {
    const Ref<Base> shared = Ref<Base>::share(raw);
    EXPECT_EQ(raw->use_count(), 2u);
  }
  Ref<Base>::adopt(raw).reset();
  EXPECT_EQ(destroyed, 1);
  EXPECT_FALSE(Ref<Base>::share(nullptr));
}

TEST(Ref, ThreadsMayCopyAndDropAtOnce) {
  int destroyed = 0;
  Ref<Base> shared = make_ref<Base>(&destroyed);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([copy = shared] {
      for (int i = 0; i < 10000; ++i) {
        const Ref<Base> again = copy;
        EXPECT_GE(again->use_count(), 2u);
      }
    });
  }
  shared.reset();
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  EXPECT_EQ(destroyed, 1);
}

struct Findable : RefCounted {
  explicit Findable(bool* found) : found(found) { make_findable(); }
  ~Findable() { *found = static_cast<bool>(Ref<Findable>::share_if_alive(this)); }
  bool* found;
};

TEST(Ref, FindableObjectIsSharedWhileAlive) {
  bool found = true;
  const Ref<Findable> a = make_ref<Findable>(&found);
  EXPECT_EQ(a->use_count(), 1u);
  {
    const Ref<Findable> b = Ref<Findable>::share_if_alive(a.get());
    EXPECT_EQ(a, b);
    EXPECT_EQ(a->use_count(), 2u);
  }
  EXPECT_EQ(a->use_count(), 1u);
}

TEST(Ref, FindableObjectIsNotSharedOnceItsLastReferenceWasReleased) {
  bool found = true;
  make_ref<Findable>(&found).reset();
  EXPECT_FALSE(found);
}

}  // namespace
}  // namespace lockstep
