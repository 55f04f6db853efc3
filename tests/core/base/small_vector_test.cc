#include "core/base/small_vector.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

/// A number that counts its live instances.
struct Counted {
  static inline int alive = 0;
  int value = 0;

  Counted(int v = 0) : value(v) { ++alive; }
  Counted(const Counted& other) : value(other.value) { ++alive; }
  Counted(Counted&& other) noexcept : value(std::exchange(other.value, -1)) { ++alive; }
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&& other) noexcept {
    value = std::exchange(other.value, -1);
    return *this;
  }
  ~Counted() { --alive; }
  friend bool operator==(const Counted&, const Counted&) = default;
};

using Small = SmallVector<Counted, 3>;

std::vector<int> values(const Small& v) {
  std::vector<int> out;
  for (const Counted& each : v) out.push_back(each.value);
  return out;
}

/// Applies one random change to the vector and to its std::vector model.
void apply(Small& small, std::vector<int>& model, int kind, unsigned place) {
  const int value = static_cast<int>(place);
  switch (kind) {
    case 0:
    case 1:
      small.push_back(value);
      model.push_back(value);
      break;
    case 2: {
      const size_t at = place % (model.size() + 1);
      small.insert(at, value);
      model.insert(model.begin() + at, value);
      break;
    }
    case 3:
      if (model.empty()) break;
      small.erase(place % model.size());
      model.erase(model.begin() + place % model.size());
      break;
    case 4:
      small.resize(place % 9, Counted(value));
      model.resize(place % 9, value);
      break;
    case 5:
      if (model.empty()) break;
      small.pop_back();
      model.pop_back();
      break;
    case 6: {
      Small copy(small);
      Small other{1, 2, 3, 4};
      other = copy;
      small = other;
      break;
    }
    case 7: {
      Small moved(std::move(small));
      EXPECT_TRUE(small.empty());
      Small other{7};
      other = std::move(moved);
      small = std::move(other);
      break;
    }
    case 8:
      small.reserve(place % 12);
      break;
    case 9:
      small.clear();
      model.clear();
      break;
  }
}

RC_GTEST_PROP(SmallVector, BehavesLikeAVectorAcrossTheInlineLimit, ()) {
  const auto steps = *rc::gen::container<std::vector<std::pair<int, unsigned>>>(
      rc::gen::pair(rc::gen::inRange(0, 10), rc::gen::inRange(0u, 100u)));
  {
    Small small;
    std::vector<int> model;
    for (const auto& [kind, place] : steps) {
      apply(small, model, kind, place);
      RC_ASSERT(values(small) == model);
      RC_ASSERT(Counted::alive == static_cast<int>(model.size()));
    }
  }
  RC_ASSERT(Counted::alive == 0);
}

TEST(SmallVector, KeepsTheFirstElementsInsideTheObject) {
  Small v{1, 2, 3};
  const auto inside = [&v] {
    const auto* at = reinterpret_cast<const std::byte*>(v.data());
    const auto* object = reinterpret_cast<const std::byte*>(&v);
    return at >= object && at < object + sizeof v;
  };
  EXPECT_TRUE(inside());
  v.push_back(4);
  EXPECT_FALSE(inside());
}

TEST(SmallVector, MovingALongOneTakesItsMemory) {
  Small v{1, 2, 3, 4};
  const Counted* memory = v.data();
  const Small taken(std::move(v));
  EXPECT_EQ(taken.data(), memory);
}

TEST(SmallVector, AcceptsItsOwnElementWhenItGrows) {
  SmallVector<std::string, 2> v{"an element too long to live inside its string", "b"};
  v.emplace_back(v[0]);
  EXPECT_EQ(v[2], v[0]);
  v.push_back(v[1]);
  v.resize(20, v[2]);
  EXPECT_EQ(v[19], v[0]);
}

TEST(SmallVector, SelfAssignmentChangesNothing) {
  Small v{1, 2, 3, 4};
  Small& same = v;
  v = same;
  EXPECT_EQ(values(v), (std::vector<int>{1, 2, 3, 4}));
  v = std::move(same);
  EXPECT_EQ(values(v), (std::vector<int>{1, 2, 3, 4}));
}

TEST(SmallVector, ComparesSizeAndElements) {
  EXPECT_EQ((Small{1, 2}), (Small{1, 2}));
  EXPECT_FALSE((Small{1, 2} == Small{1, 3}));
  EXPECT_FALSE((Small{1, 2} == Small{1, 2, 3}));
}

TEST(SmallVector, CountAndValueDifferFromAListOfTwo) {
  EXPECT_EQ((SmallVector<int64_t, 5>(2, 7)), (SmallVector<int64_t, 5>{7, 7}));
  EXPECT_EQ((SmallVector<int64_t, 5>{2, 7}).size(), 2u);
}

}  // namespace
}  // namespace lockstep
