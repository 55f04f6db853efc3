// BITWISE runs on ranks and processors with different instruction sets.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/device/arithmetic_facts.h"
#include "tests/launcher/lost_ranks/faulty_job.h"

namespace lockstep::launcher {
namespace {

/// Whether environment variables can make a process on this machine use other instructions.
bool has_wide_vectors() {
  for (const ArithmeticFact& fact : arithmetic_facts()) {
    if (fact.name == "kernels") return fact.value == "avx512";
  }
  return false;
}

constexpr const char* kNoWideVectors = "this processor, or build, has no AVX-512 to leave out";
constexpr const char* kSmallBatches = "--set train.batch_size=8 --set train.micro_batch_size=1 ";
constexpr const char* kBitwise = "--set reproducibility=BITWISE ";

class ArithmeticOfRanks : public FaultyJob {};

TEST_F(ArithmeticOfRanks, OtherInstructionsOnOneRankAreRefusedByBitwise) {
  if (!has_wide_vectors()) GTEST_SKIP() << kNoWideVectors;
  put_job("run.txtpb");
  const std::string line = "if [ $R = 1 ]; then export LOCKSTEP_CPU_CAPABILITY=avx2; fi";
  const Result bitwise = start(each_rank(line, std::string(kSmallBatches) + kBitwise)).end();
  EXPECT_EQ(bitwise.status, 5) << bitwise.errors;
  EXPECT_TRUE(says(bitwise.errors, "MismatchError"));
  // Processors that multiply bfloat16 faster than float32 differ in more than the kernels.
  EXPECT_TRUE(says(bitwise.errors, "kernels: expected \"avx512\", got \"avx2\""));
  EXPECT_TRUE(says(bitwise.errors, " on rank 1. Start all ranks"));

  std::filesystem::remove_all(folder_ / "run");
  const Result ordinary = start(each_rank(line, "--steps 2")).end();
  EXPECT_EQ(ordinary.status, 0) << ordinary.errors;
}

class ArithmeticOfRuns : public Program {};

TEST_F(ArithmeticOfRuns, BitwiseGoesOnWithItsInstructionsOrWithAWordOfTheUser) {
  if (!has_wide_vectors()) GTEST_SKIP() << kNoWideVectors;
  put_config("run.txtpb");
  const std::string train = std::string("train run.txtpb --run-dir run ") + kSmallBatches;
  const std::string variables = "LOCKSTEP_CPU_CAPABILITY=avx2";
  ASSERT_EQ(run(train + kBitwise + "--steps 2").status, 0);
  const Result refused = run(train + kBitwise + "--steps 4", variables);
  EXPECT_EQ(refused.status, 4) << refused.output << refused.errors;
  const std::string text = refused.output + refused.errors;
  EXPECT_TRUE(says(text, "kernels: expected \"avx512\", got \"avx2\""));
  const std::string way = "--set reproducibility=ORDINARY --set train.leaves=8";
  EXPECT_TRUE(says(text, way));

  ASSERT_EQ(run(train + kBitwise + "--steps 4").status, 0);
  const Result ordinary = run(train + way + " --steps 6", variables);
  EXPECT_EQ(ordinary.status, 0) << ordinary.output;
  EXPECT_TRUE(says(ordinary.errors, "does not compute as the one that wrote the checkpoint"));
}

}  // namespace
}  // namespace lockstep::launcher
