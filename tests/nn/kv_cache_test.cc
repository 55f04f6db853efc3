#include "nn/kv_cache.h"

#include <gtest/gtest.h>

#include "core/ops/factory/factory.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"

namespace lockstep::nn {
namespace {

/// Keys or values [batch, 2, positions, 3] that hold `number`.
Tensor filled(int64_t batch, int64_t positions, double number) {
  return full({batch, 2, positions, 3}, number);
}

TEST(KvCache, AppendsBehindWhatIsThere) {
  KvCache cache(1, 4);
  (void)cache.append(0, filled(1, 2, 1), filled(1, 2, 10));
  cache.advance(2);
  const auto [keys, values] = cache.append(0, filled(1, 1, 2), filled(1, 1, 20));
  EXPECT_TRUE(equal(keys.slice(2, 0, 2), filled(1, 2, 1)));
  EXPECT_TRUE(equal(keys.slice(2, 2, 3), filled(1, 1, 2)));
  EXPECT_TRUE(equal(values.slice(2, 2, 3), filled(1, 1, 20)));
  cache.advance(1);
  expect_error<ShapeError>([&] { (void)cache.append(0, filled(1, 2, 3), filled(1, 2, 3)); },
                           "[kv_cache]", "at most 4 positions, got 5");
}

TEST(KvCache, AnotherBatchIsForAnEmptyCacheAlone) {
  KvCache cache(1, 4);
  (void)cache.append(0, filled(1, 2, 1), filled(1, 2, 10));
  cache.advance(2);
  expect_error<ShapeError>([&] { (void)cache.append(0, filled(3, 1, 2), filled(3, 1, 20)); },
                           "[kv_cache]", "the 2 positions before, got 3", "Clear the cache");
  cache.clear();
  EXPECT_TRUE(equal(cache.append(0, filled(3, 1, 2), filled(3, 1, 20)).first, filled(3, 1, 2)));
}

}  // namespace
}  // namespace lockstep::nn
