#include "train/arithmetic.h"

#include <gtest/gtest.h>

#include "dist/group/failure.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::train {
namespace {

using Facts = std::vector<ArithmeticFact>;

TEST(Arithmetic, EveryDifferenceIsToldWithBothValues) {
  const Facts facts = {{"kernels", "avx512"}, {"oneDNN", "2.6.0"}};
  EXPECT_EQ(arithmetic_difference(facts, facts), "");
  EXPECT_EQ(arithmetic_difference(facts, {{"oneDNN", "2.6.0"}, {"kernels", "avx512"}}), "");
  EXPECT_EQ(arithmetic_difference(facts, {{"kernels", "avx2"}, {"oneDNN", "3.0"}}),
            "kernels: expected \"avx512\", got \"avx2\"; oneDNN: expected \"2.6.0\", got \"3.0\"");
  EXPECT_EQ(arithmetic_difference(facts, {{"kernels", "avx512"}, {"cuDNN", "9"}}),
            "oneDNN: expected \"2.6.0\", got nothing; cuDNN: expected nothing, got \"9\"");
}

TEST(Arithmetic, RanksThatComputeAlikeMayBeginTogether) {
  dist::all_ranks(3, [](dist::ProcessGroup& group) {
    require_same_arithmetic(group, arithmetic_facts());
    require_same_arithmetic(group, {{"kernels", "of \"all\"\n"}});
  });
}

TEST(Arithmetic, RanksThatDoNotAreNamedOnAllOfThem) {
  const auto errors = dist::run_thread_ranks(4, [](dist::ProcessGroup& group) {
    const bool other = group.rank() == 1 || group.rank() == 3;
    require_same_arithmetic(group, {{"kernels", other ? "avx2" : "avx512"},
                                    {"oneDNN", group.rank() == 2 ? "3.0" : "2.6.0"}});
  });
  for (const std::exception_ptr& error : errors) {
    expect_error<dist::CommonMismatchError>(
        [&] { std::rethrow_exception(error); },
        "kernels: expected \"avx512\", got \"avx2\" on ranks 1, 3; oneDNN: expected \"2.6.0\", got "
        "\"3.0\" on rank 2.",
        "--set reproducibility=ORDINARY");
  }
}

}  // namespace
}  // namespace lockstep::train
