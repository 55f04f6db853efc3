// A run that is killed at any call on its files resumes with the same result.

#include <gtest/gtest.h>

#include "tests/launcher/faults/file_faults.h"
#include "train/report/run_comparison.h"
#include "train/run/checkpoint.h"

namespace lockstep::launcher {
namespace {

class KillSweep : public FileFaults {
 protected:
  /// Saves three checkpoints and keeps one, so that saving, replacing and removing all happen.
  Result train(const std::string& directory, const std::string& variables = "") const {
    return run("train run.txtpb --run-dir " + directory, variables);
  }
  void expect_repaired(const std::string& what) const {
    // Every checkpoint is either complete or recognized as incomplete.
    for (const train::CheckpointEntry& entry :
         train::list_checkpoints(folder_ / "run/checkpoints")) {
      if (!entry.complete) continue;
      EXPECT_NO_THROW(train::verify_checkpoint(entry.path)) << what;
    }
    const Result resumed = train("run");
    ASSERT_EQ(resumed.status, 0) << what << "\n" << resumed.errors;
    EXPECT_TRUE(train::compare_runs(train::read_metrics(folder_ / "whole"),
                                    train::read_metrics(folder_ / "run"))
                    .identical())
        << what;
    EXPECT_EQ(file_content(folder_ / "run/model.safetensors"),
              file_content(folder_ / "whole/model.safetensors"))
        << what;
    // Resuming removes all partial files.
    const auto left = std::filesystem::directory_iterator(folder_ / "run/checkpoints");
    EXPECT_EQ(std::distance(begin(left), end(left)), 1) << what;
    std::filesystem::remove_all(folder_ / "run");
  }
};

TEST_F(KillSweep, NothingIsLostWhereverARunIsKilled) {
  put_config("run.txtpb", "checkpoint { every_steps: 2 keep_last: 1 }\n");
  ASSERT_EQ(train("whole").status, 0);
  ASSERT_EQ(train("run", counting("run")).status, 0);
  const std::vector<FileCall> calls = without_middle_writes(file_calls());
  std::filesystem::remove_all(folder_ / "run");
  ASSERT_GT(calls.size(), 100u);

  int64_t halves = 0;
  for (const FileCall& call : calls) {
    // Calls outside the checkpoints are alike, so every eighth is enough.
    const bool saves = call.path.find("/checkpoints") != call.path.npos;
    if (!saves && call.number % 8 != 0) continue;
    const std::string what = fmt::format("{} {} {}", call.number, call.name, call.path);
    ASSERT_EQ(train("run", faults("run", call.number, "kill")).status, 128 + 9) << what;
    expect_repaired(what);
    if (call.name != "write") continue;
    ASSERT_EQ(train("run", faults("run", call.number, "half")).status, 128 + 9) << what;
    expect_repaired(what + ", half");
    ++halves;
  }
  EXPECT_GT(halves, 10);
}

}  // namespace
}  // namespace lockstep::launcher
