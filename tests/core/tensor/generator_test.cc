#include "core/tensor/generator.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/tensor/random_state_guard.h"

namespace lockstep {
namespace {

TEST(Generator, KeysNameSeedStepMicroBatchAndCall) {
  Generator generator(7);
  generator.set_position(11, 3);
  generator.next_call();
  const RandomKey key = generator.next_call();
  EXPECT_EQ(key, (RandomKey{.seed = 7, .step = 11, .micro_batch = 3, .call = 1}));
}

TEST(Generator, CountersOfDifferentCallsNeverMeet) {
  std::set<std::array<uint32_t, 4>> counters;
  size_t keys = 0;
  for (uint64_t step : {uint64_t{0}, uint64_t{1}, Generator::kMaxSteps - 1}) {
    for (uint32_t micro_batch : {0U, 1U, Generator::kMaxMicroBatches - 1}) {
      for (uint32_t call : {0U, 1U, 1U << 18, Generator::kMaxCalls - 1}) {
        const RandomKey key{.seed = 1, .step = step, .micro_batch = micro_batch, .call = call};
        for (uint64_t group : {uint64_t{0}, uint64_t{1}, (uint64_t{1} << 46) - 1}) {
          counters.insert(key.counter(group));
          ++keys;
        }
      }
    }
  }
  EXPECT_EQ(counters.size(), keys);
}

TEST(Generator, APositionAlwaysStartsAtItsFirstCall) {
  Generator generator(1);
  generator.set_position(5, 0);
  const RandomKey first = generator.next_call();
  generator.next_call();
  generator.set_position(5, 0);
  EXPECT_EQ(generator.next_call(), first);
}

TEST(Generator, StateLetsRecomputationDrawAgain) {
  Generator generator(1);
  generator.set_position(2, 1);
  generator.next_call();
  const RandomKey state = generator.state();
  const RandomKey drawn = generator.next_call();
  generator.set_state(state);
  EXPECT_EQ(generator.next_call(), drawn);
}

TEST(Generator, RefusesPositionsThatDoNotFitTheCounter) {
  Generator generator;
  EXPECT_THROW(generator.set_position(Generator::kMaxSteps, 0), IndexError);
  EXPECT_THROW(generator.set_position(0, Generator::kMaxMicroBatches), IndexError);
  generator.set_state({.seed = 0, .step = 0, .micro_batch = 0, .call = Generator::kMaxCalls});
  EXPECT_THROW(generator.next_call(), IndexError);
}

TEST(Generator, AGuardRestoresTheDefaultAlsoAfterAnException) {
  manual_seed(5);
  default_generator().next_call();
  const RandomKey before = default_generator().state();
  try {
    const RandomStateGuard guard;
    manual_seed(6);
    throw Error("[test] thrown");
  } catch (const Error&) {
  }
  EXPECT_EQ(default_generator().state(), before);
}

TEST(Generator, EachThreadHasItsOwnDefault) {
  manual_seed(3);
  std::thread([] {
    manual_seed(4);
    default_generator().next_call();
  }).join();
  EXPECT_EQ(default_generator().next_call(), (RandomKey{.seed = 3}));
}

TEST(Generator, ThreadsThatWereNotSeededDrawNumbersOfTheirOwn) {
  manual_seed(3);
  std::set<uint64_t> seeds = {default_generator().seed()};
  for (int i = 0; i < 3; ++i) {
    std::thread([&] { seeds.insert(default_generator().seed()); }).join();
  }
  EXPECT_EQ(seeds.size(), 4U);
  EXPECT_TRUE(seeds.contains(3));
}

TEST(Generator, TheFirstThreadOfTheProcessHasTheProcessSeed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process in which no generator was used yet
  EXPECT_EXIT(
      {
        std::thread([] { manual_seed(7); }).join();
        std::exit(default_generator().seed() == 7 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lockstep
