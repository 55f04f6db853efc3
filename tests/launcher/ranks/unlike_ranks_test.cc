// Ranks that were not started alike are refused before they train.

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "core/base/build_identity.h"
#include "tests/launcher/ranks.h"

namespace lockstep::launcher {
namespace {

using testing::HasSubstr;

class UnlikeRanks : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    if (!IsSkipped()) put_config("run.txtpb");
  }
  /// A shell line for rank `rank` alone.
  static std::string on_rank(int rank, const std::string& line) {
    return fmt::format("if [ $OMPI_COMM_WORLD_RANK = {} ]; then {}; fi;", rank, line);
  }
};

TEST_F(UnlikeRanks, VariablesThatMustAgreeAreNamedWithTheirRanks) {
  const Result shm =
      train(3, "run", "--set train.batch_size=6", on_rank(1, "export LOCKSTEP_SHM=0"));
  EXPECT_EQ(shm.status, 5) << shm.errors;
  EXPECT_THAT(shm.errors,
              HasSubstr("ranks 0-2: MismatchError: [start] ranks differ in LOCKSTEP_SHM: ranks 0, "
                        "2: 1; rank 1: 0. Start all ranks"));
  EXPECT_EQ(shm.errors.find("MismatchError"), shm.errors.rfind("MismatchError")) << shm.errors;
  const Result tf32 = train(2, "run", "", on_rank(0, "export LOCKSTEP_ALLOW_TF32=1"));
  EXPECT_EQ(tf32.status, 5) << tf32.errors;
  EXPECT_THAT(tf32.errors, HasSubstr("ranks differ in LOCKSTEP_ALLOW_TF32: rank 0: 1; rank 1: 0."));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(UnlikeRanks, AVariableThatSaysWhatItsAbsenceMeansIsNoDifference) {
  const Result result = train(2, "run", "--steps 2",
                              on_rank(1,
                                      "export LOCKSTEP_SHM=1 LOCKSTEP_CUDNN=1 "
                                      "LOCKSTEP_ALLOW_TF32=0 LOCKSTEP_WARN_COPIES=1"));
  EXPECT_EQ(result.status, 0) << result.errors;
}

TEST_F(UnlikeRanks, AnotherTextOnOneOfThemIsRefusedAlsoInItsHeldOutPart) {
  put_file(folder_ / "text.txtpb",
           "model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 8 } }\n"
           "data { text { path: 'text' held_out_bytes: 100 } }\n"
           "train { steps: 6 batch_size: 2 }\n");
  const std::string text(1000, 'a');
  for (const size_t changed : {500, 950}) {
    for (const char* more : {"", "--set reproducibility=BITWISE --set train.batch_size=8"}) {
      for (const int rank : {0, 1}) {
        std::string own = text;
        if (rank == 1) own[changed] = 'b';
        std::filesystem::create_directories(folder_ / fmt::format("of{}", rank));
        put_file(folder_ / fmt::format("of{}/text", rank), own);
      }
      const Result result =
          on_ranks(2, fmt::format("cd of$OMPI_COMM_WORLD_RANK; exec \"$0\" train ../text.txtpb "
                                  "--run-dir ../run {}",
                                  more));
      EXPECT_EQ(result.status, 5) << result.errors;
      EXPECT_THAT(result.errors,
                  HasSubstr("[train] rank 1 has another hash of its data than rank 0"));
      std::filesystem::remove_all(folder_ / "run");
    }
  }
}

TEST_F(UnlikeRanks, AnotherBuildOfOneIsNamed) {
  // A copy of the program and the library that tells another identity.
  const std::string own = build_identity();
  std::string other = own;
  other[0] = own[0] == 'f' ? 'e' : 'f';
  const std::string bin = LOCKSTEP_BIN_DIR;
  ASSERT_EQ(
      shell(fmt::format("mkdir other; for file in '{0}/lockstep' '{0}'/../lib/liblockstep.so*; "
                        "do [ -e \"$file\" ] && LC_ALL=C sed 's/{1}/{2}/g' \"$file\" "
                        "> other/$(basename \"$file\"); done; chmod +x other/*",
                        bin, own, other))
          .status,
      0);
  const Result result = shell(
      mpirun() + fmt::format(" -np 1 '{0}/lockstep' train run.txtpb --run-dir run : -np 1 sh -c "
                             "'LD_LIBRARY_PATH=$PWD/other exec other/lockstep train run.txtpb "
                             "--run-dir run'",
                             bin));
  EXPECT_EQ(result.status, 5) << result.errors;
  EXPECT_THAT(result.errors,
              HasSubstr(fmt::format("ranks differ in build: rank 0: {}; rank 1: {}.", own, other)));
}

}  // namespace
}  // namespace lockstep::launcher
