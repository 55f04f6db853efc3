#include "core/memory/poison.h"

#include <gtest/gtest.h>

#include "core/ops/factory/factory.h"
#include "core/tensor/allocator.h"

namespace lockstep {
namespace {

class Poison : public testing::Test {
 protected:
  void SetUp() override {
    if (!kCanPoison) GTEST_SKIP() << "not built with AddressSanitizer";
  }
  static bool is_forbidden([[maybe_unused]] const void* address) {
#if defined(__SANITIZE_ADDRESS__)
    return __asan_address_is_poisoned(address) != 0;
#else
    return false;
#endif
  }
};

TEST_F(Poison, WhatARequestWasRoundedUpByIsForbidden) {
  const Tensor x = empty({25}, {DType::kF32, kCPU});
  const float* const data = x.data<float>();
  EXPECT_FALSE(is_forbidden(data + 24));
  EXPECT_TRUE(is_forbidden(data + 25));
}

TEST_F(Poison, ABlockIsForbiddenOnceItIsGivenBackAndAllowedWhenItIsLentAgain) {
  Tensor x = empty({25}, {DType::kF32, kCPU});
  const float* const data = x.data<float>();
  x = Tensor();
  EXPECT_TRUE(is_forbidden(data));
  const Tensor y = empty({100}, {DType::kF32, kCPU});
  ASSERT_EQ(y.data<float>(), data) << "512 bytes serve both";
  EXPECT_FALSE(is_forbidden(data + 99));
  EXPECT_TRUE(is_forbidden(data + 100));
}

}  // namespace
}  // namespace lockstep
