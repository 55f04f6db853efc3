#include "core/dispatch/result_places.h"

#include <gtest/gtest.h>

#include <array>

#include "core/dispatch/dispatcher.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sort/sort.h"

namespace lockstep {
namespace {

Ref<Storage> block_of(size_t bytes) { return make_ref<Storage>(bytes, kCPU); }

TEST(ResultPlaces, TheNextCallsResultLiesThere) {
  const Tensor x = full({4}, 2.0);
  std::array<Ref<Storage>, 1> memory = {block_of(16)};
  const Ref<Storage> place = memory[0];
  const ResultPlaces places(dispatcher().find("neg"), memory);
  const Tensor first = neg(x);
  EXPECT_EQ(first.storage(), place);
  EXPECT_TRUE(equal(first, full({4}, -2)));
  EXPECT_NE(neg(x).storage(), place);
}

TEST(ResultPlaces, OtherOperatorsAllocate) {
  std::array<Ref<Storage>, 1> memory = {block_of(16)};
  const Ref<Storage> place = memory[0];
  const ResultPlaces places(dispatcher().find("neg"), memory);
  EXPECT_NE(exp(ones({4})).storage(), place);
  EXPECT_EQ(neg(ones({4})).storage(), place);
}

TEST(ResultPlaces, WhatDoesNotFitIsAllocated) {
  std::array<Ref<Storage>, 1> memory = {block_of(16)};
  const Ref<Storage> place = memory[0];
  const ResultPlaces places(dispatcher().find("neg"), memory);
  const Tensor large = neg(ones({5}));
  EXPECT_NE(large.storage(), place);
  EXPECT_TRUE(equal(large, full({5}, -1)));
}

TEST(ResultPlaces, EachResultHasItsOwn) {
  std::array<Ref<Storage>, 2> memory = {Ref<Storage>(), block_of(32)};
  const Ref<Storage> place = memory[1];
  const ResultPlaces places(dispatcher().find("sort"), memory);
  const auto [values, indices] = sort(arange(4, {DType::kF32}).neg(), 0);
  EXPECT_NE(values.storage(), place);
  EXPECT_EQ(indices.storage(), place);
  EXPECT_EQ(indices.select(0, 0).item<int64_t>(), 3);
}

TEST(ResultPlaces, AnInnerGuardCountsWhileItIsAlive) {
  std::array<Ref<Storage>, 1> outer = {block_of(16)}, inner = {block_of(16)};
  const Ref<Storage> of_outer = outer[0], of_inner = inner[0];
  const Operator& op = dispatcher().find("neg");
  const ResultPlaces places(op, outer);
  {
    const ResultPlaces nested(op, inner);
    EXPECT_EQ(neg(ones({4})).storage(), of_inner);
  }
  EXPECT_EQ(neg(ones({4})).storage(), of_outer);
}

}  // namespace
}  // namespace lockstep
