#include "train/bisect/recorded_run.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/train/bisect/recorded_runs.h"

namespace lockstep::train {
namespace {

TEST(RecordedRun, RefusesADirectoryOfALaterVersion) {
  const TemporaryDirectory folder;
  const RecordedRun a = recorded(folder, "a", six_steps(folder));
  put_file(a.directory.environment(), "{\"version\": \"999.0.0\"}");
  EXPECT_TRUE(says(message_of<CheckpointError>([&] { (void)read_run(a.directory.path()); }),
                   "computed by Lockstep 999.0.0"));
}

TEST(RecordedRun, RefusesWhatIsNoRun) {
  const TemporaryDirectory folder;
  EXPECT_THROW((void)read_run(folder / "nothing"), DataError);
  const RecordedRun a = recorded(folder, "a", six_steps(folder));
  std::filesystem::remove(a.directory.config());
  EXPECT_TRUE(says(message_of<DataError>([&] { (void)read_run(a.directory.path()); }),
                   "has no config.txtpb"));
}

}  // namespace
}  // namespace lockstep::train
