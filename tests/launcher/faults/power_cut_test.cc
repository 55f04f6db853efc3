// A run's writes are recorded and replayed up to a power cut, after which a disk may hold less than
// was written: starting again ends with the bits of an undisturbed run.

#include <gtest/gtest.h>

#include "tests/launcher/faults/file_faults.h"
#include "tests/launcher/faults/recorded_disk.h"

namespace lockstep::launcher {
namespace {

namespace fs = std::filesystem;

class PowerCut : public FileFaults {
 protected:
  void cut_often(DiskModel model, uint32_t seed) {
    put_config("run.txtpb", "checkpoint { every_steps: 2 keep_last: 1 }\n");
    const fs::path record = folder_ / "record";
    const std::string recording =
        fmt::format("{} FILE_FAULTS_RECORD='{}'", counting("run"), record.string());
    ASSERT_EQ(run("train run.txtpb --run-dir run", recording).status, 0);
    const std::string weights = file_content(folder_ / "run/model.safetensors");
    const std::vector<DiskChange> changes = read_changes(record);
    ASSERT_GT(changes.size(), 100u);
    const fs::path here = fs::canonical(folder_.path()) / "run";
    constexpr int kCuts = 40;
    std::mt19937 random(seed);
    for (int cut = 0; cut < kCuts; ++cut) {
      const size_t count = 1 + random() % changes.size();
      RecordedDisk disk(here, model);
      bool was_saved = false;
      for (size_t i = 0; i < count; ++i) {
        disk.apply(changes[i]);
        // The sync after the name of a checkpoint was given.
        was_saved = was_saved || (i > 0 && changes[i].operation == "fsync" &&
                                  changes[i].path.ends_with("/checkpoints") &&
                                  changes[i - 1].operation == "rename");
      }
      fs::remove_all(folder_ / "run");
      disk.cut_power(folder_ / "disk", random);
      fs::rename(folder_ / "disk", folder_ / "run");
      const std::string what = fmt::format("cut {} after {} changes", cut, count);
      const Result again = run("train run.txtpb --run-dir run");
      ASSERT_EQ(again.status, 0) << what << "\n" << again.errors;
      if (was_saved) {
        EXPECT_TRUE(says(again.errors, "going on from")) << what;
      }
      ASSERT_EQ(file_content(folder_ / "run/model.safetensors"), weights) << what;
    }
  }
};

TEST_F(PowerCut, LosesNoCheckpointOnAStrictDisk) { cut_often(DiskModel::kStrict, 1); }

TEST_F(PowerCut, LosesNoCheckpointOnADiskWithAJournal) { cut_often(DiskModel::kJournal, 2); }

}  // namespace
}  // namespace lockstep::launcher
