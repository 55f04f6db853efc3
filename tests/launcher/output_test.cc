// What happens to a command whose standard output or standard error cannot be written.

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/launcher/program.h"
#include "tests/launcher/ranks.h"

namespace lockstep::launcher {
namespace {

using testing::HasSubstr;

class BrokenLog : public Program {
 protected:
  BrokenLog() {
    put_config("run.txtpb");
    put_file(folder_ / "short.txtpb", "train { steps: 30 log_every: 1 }\n");
  }

  /// Trains with the redirections; expects all steps, and one line that tells of the lost log.
  void expect_trained(const std::string& redirections, const std::string& reason,
                      const std::string& options = "") const {
    const std::string program = fmt::format("'{}/lockstep'", LOCKSTEP_BIN_DIR);
    const Result result = shell(
        fmt::format("( {} train run.txtpb short.txtpb --run-dir out {} {}\necho $? > status )",
                    program, options, redirections));
    EXPECT_EQ(result.status, 0) << redirections;
    expect_told(reason);
  }
  void expect_told(const std::string& reason) const {
    EXPECT_EQ(file_content(folder_ / "status"), "0\n");
    const std::string metrics = file_content(folder_ / "out/metrics.jsonl");
    EXPECT_THAT(metrics, HasSubstr("\"step\":30,"));
    const std::string told = fmt::format("\"log_lost\":\"{}\"", reason);
    const size_t first = metrics.find("\"log_lost\"");
    ASSERT_NE(first, metrics.npos) << metrics;
    EXPECT_EQ(metrics.substr(first, told.size()), told);
    EXPECT_EQ(metrics.find("\"log_lost\"", first + 1), metrics.npos);
    EXPECT_TRUE(std::filesystem::exists(folder_ / "out/model.safetensors"));
    // Nothing but the owner's name is in the file that got the first free descriptors.
    EXPECT_TRUE(file_content(folder_ / "out/run.lock").starts_with("host "));
    EXPECT_THAT(file_content(folder_ / "out/run.lock"), testing::Not(HasSubstr("step")));
    std::filesystem::remove_all(folder_ / "out");
  }
};

TEST_F(BrokenLog, OfAPipeWithoutAReaderDoesNotEndTraining) {
  const std::string program = fmt::format("'{}/lockstep'", LOCKSTEP_BIN_DIR);
  const Result result = shell(fmt::format(
      "{{ {} train run.txtpb short.txtpb --run-dir out 2>&1; echo $? > status; }} | head -1",
      program));
  EXPECT_THAT(result.output, HasSubstr("writing to out"));
  expect_told("Broken pipe");
}

TEST_F(BrokenLog, OnAFullDiskDoesNotEndTraining) {
  expect_trained("2> /dev/full", "No space left on device");
  expect_trained("> /dev/full", "No space left on device");
  expect_trained("> /dev/full 2>&1", "No space left on device");
  expect_trained("> /dev/full", "No space left on device", "--log-format json");
}

TEST_F(BrokenLog, OfMissingDescriptorsDoesNotEndTraining) {
  expect_trained("2>&-", "Bad file descriptor");
  expect_trained("<&- >&- 2>&-", "Bad file descriptor");
}

TEST_F(BrokenLog, KeepsTheExitCodesOfErrors) {
  for (const char* redirection : {"2> /dev/full", "2>&-"}) {
    EXPECT_EQ(run(fmt::format("train missing.txtpb {}", redirection)).status, 2);
    EXPECT_EQ(
        run(fmt::format("train run.txtpb --set data.text.path=missing {}", redirection)).status, 3);
    EXPECT_EQ(run(fmt::format("train run.txtpb --run-dir out --time-limit 0.0001 {}", redirection))
                  .status,
              75);
    EXPECT_EQ(run(fmt::format("ops no_such_operator {}", redirection)).status, 2);
  }
}

TEST_F(BrokenLog, MissingDescriptorsAreOpenedOnDevNull) {
  const Result result = shell(fmt::format(
      "'{}/lockstep' train run.txtpb --steps 1000000000 --run-dir out <&- >&- 2>&- & pid=$!\n"
      "while kill -0 $pid && ! grep -q step out/metrics.jsonl; do sleep 0.01; done 2> /dev/null\n"
      "readlink /proc/$pid/fd/0 /proc/$pid/fd/1 /proc/$pid/fd/2\nkill -TERM $pid; wait $pid",
      LOCKSTEP_BIN_DIR));
  EXPECT_EQ(result.status, 75);
  EXPECT_EQ(result.output, "/dev/null\n/dev/null\n/dev/null\n");
}

class BrokenLogOfRanks : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    if (!IsSkipped()) put_config("run.txtpb");
  }
};

TEST_F(BrokenLogOfRanks, IsToldByLaunchWhichReadsThem) {
  const Result result =
      run("launch -np 2 --oversubscribe --allow-run-as-root run.txtpb --run-dir out --steps 30 > "
          "/dev/full "
          "2>&1");
  EXPECT_EQ(result.status, 0);
  const std::string metrics = file_content(folder_ / "out/metrics.jsonl");
  EXPECT_THAT(metrics, HasSubstr("\"step\":30,"));
  EXPECT_THAT(metrics, testing::EndsWith("{\"log_lost\":\"No space left on device\"}\n"));
}

class LostOutput : public Program {
 protected:
  LostOutput() {
    put_config("run.txtpb");
    put_file(folder_ / "text.txtpb", "data { text { path: 'text' held_out_bytes: 100 } }\n");
    put_file(folder_ / "text", std::string(400, 'a'));
    EXPECT_EQ(run("train run.txtpb text.txtpb --run-dir out").status, 0);
  }
};

TEST_F(LostOutput, OfAVerbThatExistsForItIsAFailure) {
  for (const char* arguments : {"eval out",
                                "eval out --json",
                                "checkpoint verify out",
                                "checkpoint ls out",
                                "checkpoint ls out --json",
                                "compare out out",
                                "plan run.txtpb",
                                "plan run.txtpb --json",
                                "plot out",
                                "sample out --num_samples 1 --max_new_tokens 5",
                                "ops",
                                "ops --json",
                                "ops add.Tensor",
                                "config print run.txtpb",
                                "config check run.txtpb",
                                "completion bash",
                                "completion paths train.",
                                "graph run.txtpb",
                                "doctor",
                                "doctor --json",
                                "--help",
                                "--version",
                                "train --help"}) {
    for (const char* redirection : {"> /dev/full", ">&-"}) {
      const Result result = run(fmt::format("{} {}", arguments, redirection));
      EXPECT_EQ(result.status, 1) << arguments << redirection << ": " << result.errors;
      EXPECT_THAT(result.errors, HasSubstr("standard output cannot be written")) << arguments;
    }
    // Waits until the reader has ended, so that the write fails.
    const Result piped = shell(fmt::format(
        "mkfifo pipe; {{ exec 3> pipe; while [ -e pipe ]; do sleep 0.01; done; '{}/lockstep' {} "
        ">&3; }} & {{ : ; }} < pipe; rm pipe; wait $!",
        LOCKSTEP_BIN_DIR, arguments));
    EXPECT_EQ(piped.status, 1) << arguments << ": " << piped.errors;
  }
}

TEST_F(LostOutput, EndsSamplingAtOnce) {
  const Result result = run("sample out --num_samples 1000000000 > /dev/full");
  EXPECT_EQ(result.status, 1);
}

}  // namespace
}  // namespace lockstep::launcher
