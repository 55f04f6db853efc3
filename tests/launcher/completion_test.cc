// The bash completion, called in the way bash calls it.

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

class Completion : public Program {
 protected:
  /// The completions that bash would offer, one per line, with the cursor at the end of `line`.
  std::string offered(const std::string& line) const {
    put_file(folder_ / "ask.sh", fmt::format(R"(
lockstep=$1
source <("$lockstep" completion bash)
COMP_LINE='{}'
COMP_POINT=${{#COMP_LINE}}
COMP_WORDS=("$lockstep")
_lockstep
printf '%s\n' "${{COMPREPLY[@]}}"
)",
                                             line));
    const Result result = shell(fmt::format("bash ask.sh '{}/lockstep'", LOCKSTEP_BIN_DIR));
    EXPECT_EQ(result.errors, "");
    return result.output;
  }
};

TEST_F(Completion, TheScriptIsValidBash) {
  const Result result =
      shell(fmt::format("'{}/lockstep' completion bash | bash -n", LOCKSTEP_BIN_DIR));
  EXPECT_EQ(result.status, 0) << result.errors;
}

TEST_F(Completion, OffersVerbsAndVerbsOfVerbs) {
  EXPECT_TRUE(says(offered("lockstep "), "config\n"));
  EXPECT_EQ(offered("lockstep comp"), "compare\ncompletion\n");
  EXPECT_EQ(offered("lockstep bi"), "bisect\n");
  EXPECT_EQ(offered("lockstep config "), "print\ncheck\nfields\ndiff\n");
}

TEST_F(Completion, OffersTheOptionsOfTheVerb) {
  EXPECT_EQ(offered("lockstep plot --l"), "--log-x\n");
  EXPECT_EQ(offered("lockstep report --s"), "--serve\n");
  EXPECT_EQ(offered("lockstep watch --o"), "--once\n");
  EXPECT_EQ(offered("lockstep config print a.txtpb --s"), "--set\n");
  EXPECT_EQ(offered("lockstep compare --s"), "\n");
}

TEST_F(Completion, OffersConfigPathsAndValues) {
  EXPECT_EQ(offered("lockstep config print a.txtpb --set schedule.w"), "schedule.warmup_steps=\n");
  EXPECT_EQ(offered("lockstep config print --set optimizer.adamw.beta"),
            "optimizer.adamw.beta1=\noptimizer.adamw.beta2=\n");
  EXPECT_EQ(offered("lockstep config print --set model.resnet.bl"),
            "model.resnet.blocks=\nmodel.resnet.blocks+=\n");
  EXPECT_EQ(offered("lockstep config print --set model.resnet.blocks+"), "model.resnet.blocks+=\n");
  // Bash breaks words at '=', so completions contain only the text after it.
  EXPECT_EQ(offered("lockstep config print --set schedule.kind="),
            "COSINE\nCONSTANT\nLINEAR\nWSD\n");
  EXPECT_EQ(offered("lockstep config print --set schedule.kind=COS"), "COSINE\n");
}

TEST_F(Completion, LeavesFilesToBash) { EXPECT_EQ(offered("lockstep compare ru"), "\n"); }

TEST_F(Completion, PathsArePrintedForAnyShell) {
  EXPECT_EQ(run("completion paths schedule.w").output, "schedule.warmup_steps=\n");
  EXPECT_TRUE(says(run("completion paths").output, "train.steps=\n"));
}

}  // namespace
}  // namespace lockstep::launcher
