// Training with several ranks on emulated GPUs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;
using testing::Pointwise;

class GpuRanks : public Program {
 protected:
  static constexpr const char* kEmulation = LOCKSTEP_BIN_DIR "/../lib/libcuda_emulation.so";

  void SetUp() override {
    if (!std::filesystem::exists(kEmulation)) GTEST_SKIP() << "no emulated GPU in this build";
    put_config("run.txtpb");
  }

  Result train(int ranks, int gpus, const std::string& arguments) const {
    const std::string variables =
        fmt::format("LD_PRELOAD={} LOCKSTEP_EMULATED_GPUS={}", kEmulation, gpus);
    if (ranks == 1) return run("train run.txtpb " + arguments, variables);
    return shell(
        fmt::format("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun "
                    "--oversubscribe --bind-to none -np {} env {} '{}/lockstep' train run.txtpb {}",
                    ranks, variables, LOCKSTEP_BIN_DIR, arguments));
  }
};

TEST_F(GpuRanks, OneTrainsWithTheLossesOfTheCpu) {
  ASSERT_EQ(run("train run.txtpb --run-dir cpu").status, 0);
  const Result result = train(1, 1, "--set device=cuda --run-dir gpu");
  ASSERT_EQ(result.status, 0) << result.errors;
  ASSERT_EQ(losses("cpu").size(), 6u);
  EXPECT_THAT(losses("gpu"), Pointwise(DoubleNear(1e-5), losses("cpu")));
}

TEST_F(GpuRanks, EachHasItsOwnAndTheLossesOfOne) {
  if (const std::string why = no_mpirun(); !why.empty()) GTEST_SKIP() << why;
  ASSERT_EQ(run("train run.txtpb --run-dir cpu").status, 0);
  const Result result = train(2, 2, "--set device=cuda --run-dir gpu");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors,
              HasSubstr("gradients go through the memory of the cpu, not by NCCL: "));
  EXPECT_THAT(losses("gpu"), Pointwise(DoubleNear(1e-5), losses("cpu")));
}

TEST_F(GpuRanks, MoreThanGpusAreRefusedUnlessTheyMayShare) {
  if (const std::string why = no_mpirun(); !why.empty()) GTEST_SKIP() << why;
  const Result refused = train(2, 1, "--set device=cuda --run-dir refused");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors,
              HasSubstr("2 ranks on this host and device: \"cuda\", which is one GPU here"));
  const Result shared =
      train(2, 1, "--set device=cuda --set parallel.share_devices=true --run-dir shared");
  EXPECT_EQ(shared.status, 0) << shared.errors;
}

TEST_F(GpuRanks, AProfileOfOneHasTheMachinesRatesAndTheKernels) {
  const Result result =
      train(1, 1, "--set device=cuda --run-dir gpu --profile wait=1,warmup=1,active=2");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("of peak"));
  EXPECT_THAT(result.output, HasSubstr(" kernel "));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "gpu/profile/machine.json"));
}

}  // namespace
}  // namespace lockstep::launcher
