// What signals do to `lockstep train` in each of its phases, and how to go on afterwards.

#include <gmock/gmock.h>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using testing::HasSubstr;

class Stopping : public Program {
 protected:
  /// Starts training in the background of a shell, runs `meanwhile` (shell commands that find its
  /// process in $pid), and returns how training ended.
  Result train(const std::string& arguments, const std::string& meanwhile) const {
    return shell(fmt::format("'{}/lockstep' train {} & pid=$!\n{}\nwait $pid", LOCKSTEP_BIN_DIR,
                             arguments, meanwhile));
  }
  /// The command after "To go on:".
  static std::string command_in(const std::string& errors) {
    constexpr std::string_view kBefore = "To go on:\n  ";
    const size_t at = errors.find(kBefore);
    if (at == errors.npos) return "false";
    const size_t begin = at + kBefore.size();
    return errors.substr(begin, errors.find('\n', begin) - begin);
  }
};

/// Shell commands that wait until the file says what is expected, or training has ended.
std::string until(const std::string& text, const std::string& file) {
  return fmt::format(
      "while kill -0 $pid 2> /dev/null && ! grep -q '{}' {} 2> /dev/null; do sleep 0.01; done\n",
      text, file);
}

TEST_F(Stopping, EverySignalSavesAndSaysWhatItWaitsFor) {
  put_config("run.txtpb");
  for (const char* signal : {"HUP", "TERM", "USR1"}) {
    const Result result =
        train("run.txtpb --steps 1000000000 --run-dir out",
              until("\"step\":", "out/metrics.jsonl") + "kill -" + signal + " $pid");
    EXPECT_EQ(result.status, 75) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(fmt::format("SIG{}: stopping", signal)));
    EXPECT_THAT(result.errors, HasSubstr("; a second signal ends the run at once"));
    EXPECT_THAT(result.errors, HasSubstr("everything is saved. To go on:\n"));
    EXPECT_EQ(run("checkpoint verify out").status, 0);
    std::filesystem::remove_all(folder_ / "out");
  }
}

TEST_F(Stopping, IgnoredHangupsStayIgnored) {
  put_config("run.txtpb");
  const Result result =
      shell(fmt::format("trap '' HUP\n'{}/lockstep' train run.txtpb --steps 1000000000 --run-dir "
                        "out & pid=$!\n{}kill -HUP $pid; kill -TERM $pid; wait $pid",
                        LOCKSTEP_BIN_DIR, until("\"step\":", "out/metrics.jsonl")));
  EXPECT_EQ(result.status, 75) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("SIGTERM: stopping"));
}

TEST_F(Stopping, ReadingDataEndsAtOnce) {
  put_config("run.txtpb");
  // Takes longer to read than the shell needs to see that it is open; holes take no room on disk.
  ASSERT_EQ(shell("truncate -s 4G text").status, 0);
  for (const char* tokenizer : {"byte {}", "sentencepiece { vocab_size: 300 }"}) {
    put_file(folder_ / "text.txtpb",
             fmt::format("data {{ text {{ path: 'text' tokenizer {{ {} }} }} }}\n", tokenizer));
    const Result result = shell(fmt::format(
        "'{}/lockstep' train run.txtpb text.txtpb --set model.gpt2.vocab_size=300 "
        "--run-dir out & pid=$!\nwhile kill -0 $pid 2> /dev/null && ! {{ readlink "
        "/proc/$pid/exe | grep -q '/lockstep$' && readlink /proc/$pid/fd/* | grep -q '/text$'; "
        "}}; do sleep 0.01; done\nkill -TERM $pid\nwait $pid",
        LOCKSTEP_BIN_DIR));
    EXPECT_EQ(result.status, 75) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("SIGTERM: stopped before the first step"));
    EXPECT_THAT(result.errors, HasSubstr("To go on:\n"));
    std::filesystem::remove_all(folder_ / "out");
  }
}

TEST_F(Stopping, TheCommandToGoOnWorksWhenPasted) {
  put_config("my run.txtpb");
  Result result =
      run("train 'my run.txtpb' --run-dir \"it's here\" --fresh --set name=a --steps 3 "
          "--log-format json --time-limit 0.0001",
          "LOCKSTEP_TRAIN_BATCH_SIZE=4");
  int starts = 1;
  for (; result.status == 75 && starts < 5; ++starts) {
    const std::string command = command_in(result.errors);
    EXPECT_THAT(command, HasSubstr("LOCKSTEP_TRAIN_BATCH_SIZE=4 "));
    result = shell(command);
  }
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(starts, 3);
  EXPECT_THAT(run("compare \"it's here\" \"it's here\"").output,
              HasSubstr("identical: 3 steps, bit for bit\n"));
}

TEST_F(Stopping, TheCommandNamesANewRunDirectory) {
  put_config("run.txtpb");
  const Result result = run("train run.txtpb --steps 2 --time-limit 0.0001");
  EXPECT_EQ(result.status, 75);
  EXPECT_THAT(command_in(result.errors), HasSubstr(" --run-dir runs/run-"));
  EXPECT_EQ(shell(command_in(result.errors)).status, 0);
}

TEST_F(Stopping, UnderLaunchTheCommandStartsAllRanks) {
  put_config("run.txtpb");
  const Result result = run(
      "launch -np 2 --oversubscribe --allow-run-as-root run.txtpb --steps 2 --time-limit 0.0001");
  if (says(result.errors, "needs a launcher") || says(result.errors, "need a launcher")) {
    GTEST_SKIP() << result.errors;
  }
  EXPECT_EQ(result.status, 75) << result.errors;
  const std::string command = command_in(result.errors);
  EXPECT_THAT(command, HasSubstr(" launch -np 2 --oversubscribe --allow-run-as-root run.txtpb"));
  EXPECT_THAT(command, HasSubstr(" --run-dir runs/run-"));
  const Result again = shell(command);
  EXPECT_EQ(again.status, 0) << again.errors;
}

}  // namespace
}  // namespace lockstep::launcher
