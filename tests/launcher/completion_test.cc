// The completions, called in the way shells call them.

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

  bool has_shell(const std::string& name) const { return shell(name + " -c true").status == 0; }

  /// What the zsh function offers for `words`, zsh's array, of which the last is being typed: lines
  /// "name:help", "file" for file names. zsh's own functions, which work only while it completes,
  /// are replaced by ones that print.
  std::string offered_by_zsh(const std::string& words) const {
    put_file(folder_ / "ask.zsh", fmt::format(R"(
compdef() {{ }}
compset() {{ PREFIX=${{PREFIX#*=}} }}
compadd() {{ local -a found=(${{@:#-*}}); (( ! $#found )) || print -l -- $found }}
_describe() {{ print -l -- ${{(P)@[-1]}} }}
_files() {{ print file }}
source <(lockstep completion zsh)
words=({})
CURRENT=$#words
PREFIX=$words[-1]
_lockstep
)",
                                              words));
    const Result result = shell(fmt::format("PATH='{}':$PATH zsh -f ask.zsh", LOCKSTEP_BIN_DIR));
    EXPECT_EQ(result.errors, "");
    return result.output;
  }

  /// Lines "name<tab>help".
  std::string offered_by_fish(const std::string& line) const {
    const Result result =
        shell(fmt::format("HOME=$PWD PATH='{}':$PATH fish -N -c \"lockstep completion fish | "
                          "source; complete -C '{}'\"",
                          LOCKSTEP_BIN_DIR, line));
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
            "COSINE\nCONSTANT\nLINEAR\nWSD\nINVERSE_SQRT\n");
  EXPECT_EQ(offered("lockstep config print --set schedule.kind=COS"), "COSINE\n");
}

TEST_F(Completion, LeavesFilesToBash) { EXPECT_EQ(offered("lockstep compare ru"), "\n"); }

TEST_F(Completion, ZshOffersVerbsOptionsPathsAndFiles) {
  if (!has_shell("zsh")) GTEST_SKIP() << "zsh is not installed";
  EXPECT_TRUE(says(offered_by_zsh("lockstep ''"), "compare:"));
  EXPECT_TRUE(says(offered_by_zsh("lockstep config ''"), "print:"));
  EXPECT_TRUE(says(offered_by_zsh("lockstep plot --l"), "--log-x:"));
  EXPECT_FALSE(says(offered_by_zsh("lockstep compare --l"), "--log-x:"));
  EXPECT_EQ(offered_by_zsh("lockstep compare ''"), "file\n");
  EXPECT_EQ(offered_by_zsh("lockstep train a --set schedule.kind=COS"), "schedule.kind=COSINE\n");
  EXPECT_EQ(offered_by_zsh("lockstep train a --set=schedule.w"), "schedule.warmup_steps=\n");
  EXPECT_TRUE(says(offered_by_zsh("lockstep train a --log-format ''"), "nanogpt\n"));
}

TEST_F(Completion, FishOffersVerbsOptionsAndPaths) {
  if (!has_shell("fish")) GTEST_SKIP() << "fish is not installed";
  EXPECT_TRUE(says(offered_by_fish("lockstep comp"), "compare\t"));
  EXPECT_TRUE(says(offered_by_fish("lockstep config "), "print\t"));
  EXPECT_TRUE(says(offered_by_fish("lockstep plot --l"), "--log-x\t"));
  EXPECT_EQ(offered_by_fish("lockstep compare --l"), "");
  EXPECT_TRUE(says(offered_by_fish("lockstep train a --set schedule.w"), "schedule.warmup_steps="));
  EXPECT_TRUE(says(offered_by_fish("lockstep train a --set=schedule.kind=COS"), "COSINE"));
  EXPECT_TRUE(says(offered_by_fish("lockstep train a --log-format "), "nanogpt\t"));
}

TEST_F(Completion, PathsArePrintedForAnyShell) {
  EXPECT_EQ(run("completion paths schedule.w").output, "schedule.warmup_steps=\n");
  EXPECT_TRUE(says(run("completion paths").output, "train.steps=\n"));
}

}  // namespace
}  // namespace lockstep::launcher
