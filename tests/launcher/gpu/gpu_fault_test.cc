// A GPU that fails in the midst of training, as one that falls off the bus does, or hangs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class GpuFault : public Program {
 protected:
  static constexpr const char* kEmulation = LOCKSTEP_BIN_DIR "/../lib/libcuda_emulation.so";
  static constexpr const char* kCheckpoint = "checkpoints/step-00000002";

  void SetUp() override {
    if (!std::filesystem::exists(kEmulation)) GTEST_SKIP() << "no emulated GPU in this build";
    put_config("run.txtpb", "checkpoint { every_steps: 2 }\n");
  }

  static std::string emulated(int gpus) {
    return fmt::format("LD_PRELOAD={} LOCKSTEP_EMULATED_GPUS={}", kEmulation, gpus);
  }
  /// Has the GPU fail with this error of CUDA's once the run has saved its second step.
  static std::string fault(int error, const std::string& run) {
    return fmt::format("LOCKSTEP_EMULATED_FAULT={}:{}/{}", error, run, kCheckpoint);
  }
  /// Has a kernel of the GPU not end from then on.
  static std::string hang(const std::string& run) {
    return fmt::format("LOCKSTEP_EMULATED_FAULT=hang:{}/{}", run, kCheckpoint);
  }
  /// Runs a program for two ranks, each with a GPU, of which the second's is told `trouble`.
  Result run_two(const std::string& train, const std::string& trouble) const {
    const std::string program = fmt::format("'{}/lockstep' train {}", LOCKSTEP_BIN_DIR, train);
    return shell(
        fmt::format("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 mpirun "
                    "--oversubscribe --bind-to none -np 1 env {0} {1} : -np 1 env {0} {2} {1}",
                    emulated(2), program, trouble));
  }
  /// Expects that the run's checkpoint is whole, and that training goes on from it to its end with
  /// the losses of a run that nothing has disturbed.
  void expect_goes_on(const std::string& name) const {
    const std::string checkpoint = fmt::format("{}/{}", name, kCheckpoint);
    EXPECT_EQ(run("checkpoint verify " + checkpoint).status, 0);
    const Result resumed =
        run(fmt::format("train run.txtpb --set device=cuda --run-dir {}", name), emulated(1));
    EXPECT_EQ(resumed.status, 0) << resumed.errors;
    ASSERT_EQ(run("train run.txtpb --set device=cuda --run-dir whole", emulated(1)).status, 0);
    EXPECT_EQ(losses(name), losses("whole"));
  }
};

TEST_F(GpuFault, EndsTheRunWithAnErrorThatSaysWhoseItIsAndAWholeCheckpoint) {
  // An uncorrectable memory error, a kernel that failed, a GPU that fell off the bus.
  for (const auto& [error, text] :
       {std::pair(214, "The GPU itself has failed"), std::pair(719, "An earlier kernel has failed"),
        std::pair(46, "it has fallen off the bus")}) {
    const std::string name = fmt::format("failed{}", error);
    const Result result = run(fmt::format("train run.txtpb --set device=cuda --run-dir {}", name),
                              emulated(1) + " " + fault(error, name));
    EXPECT_EQ(result.status, 1) << result.errors;
    EXPECT_THAT(result.errors, AllOf(HasSubstr("DeviceError: "), HasSubstr(text)));
  }
  expect_goes_on("failed46");
}

TEST_F(GpuFault, OfOneRankEndsTheOthersAtOnce) {
  if (const std::string why = no_mpirun(); !why.empty()) GTEST_SKIP() << why;
  const Result result =
      run_two("run.txtpb --set device=cuda --run-dir failed", fault(214, "failed"));
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.status, 124) << "the rank whose GPU is sound waits for the other";
  EXPECT_THAT(result.errors, HasSubstr("The GPU itself has failed"));
  expect_goes_on("failed");
}

TEST_F(GpuFault, ThatIsAHangEndsTheRunWithWhatHangsAndAWholeCheckpoint) {
  const Result result =
      run("train run.txtpb --set device=cuda --set device_silence_seconds=2 --run-dir hung",
          emulated(1) + " " + hang("hung"));
  EXPECT_EQ(result.status, 1) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("DeviceError: [cuda] cuda:0 hangs: stream "));
  expect_goes_on("hung");
}

TEST_F(GpuFault, ThatIsAHangOfOneRankEndsTheOthersWithItsName) {
  if (const std::string why = no_mpirun(); !why.empty()) GTEST_SKIP() << why;
  const Result result = run_two(
      "run.txtpb --set device=cuda --set device_silence_seconds=2 --run-dir hung", hang("hung"));
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.status, 124) << "the rank whose GPU is sound waits for the other";
  EXPECT_THAT(result.errors, HasSubstr("rank 1: DeviceError: [cuda] cuda:1 hangs: stream "));
  expect_goes_on("hung");
}

}  // namespace
}  // namespace lockstep::launcher
