#include "train/report/run_directory.h"

#include <gtest/gtest.h>

#include <ctime>
#include <set>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

using enum RunDirectory::Existing;

TEST(RunDirectory, NewOnesAreNamedByRunAndTimeAndNeverShared) {
  const TemporaryDirectory folder;
  std::set<std::filesystem::path> paths;
  for (int i = 0; i < 4; ++i) {
    const RunDirectory run = RunDirectory::create_new("gpt", folder / "a/runs");
    EXPECT_TRUE(std::filesystem::is_directory(run.path()));
    const std::string name = run.path().filename().string();
    std::tm time{};
    const char* end = strptime(name.c_str(), "gpt-%Y%m%d-%H%M%S", &time);
    ASSERT_NE(end, nullptr) << name;
    EXPECT_TRUE(*end == '\0' || *end == '-') << name;
    EXPECT_EQ(run.path().parent_path(), folder / "a/runs");
    paths.insert(run.path());
  }
  EXPECT_EQ(paths.size(), 4u);
}

TEST(RunDirectory, ANameMustNotLeaveTheParent) {
  const TemporaryDirectory folder;
  EXPECT_THROW(RunDirectory::create_new("../x", folder.path()), ConfigError);
  EXPECT_THROW(RunDirectory::create_new("", folder.path()), ConfigError);
}

TEST(RunDirectory, AGivenFolderIsCreatedAndTakenAsItIs) {
  const TemporaryDirectory folder;
  EXPECT_EQ(RunDirectory::create_at(folder / "a/b", kContinue).path(), folder / "a/b");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b"));
  put_file(folder / "a/b/notes.txt", "mine");
  EXPECT_NO_THROW(RunDirectory::create_at(folder / "a/b", kContinue));
  EXPECT_EQ(file_content(folder / "a/b/notes.txt"), "mine");
}

TEST(RunDirectory, OneThatHoldsAnythingCanBeRefused) {
  const TemporaryDirectory folder;
  EXPECT_NO_THROW(RunDirectory::create_at(folder / "new", kRefuse));
  EXPECT_NO_THROW(RunDirectory::create_at(folder / "new", kRefuse));
  put_file(folder / "new/notes.txt", "mine");
  EXPECT_TRUE(
      says(message_of<ConfigError>([&] { RunDirectory::create_at(folder / "new", kRefuse); }),
           "new is not empty"));
}

TEST(RunDirectory, AFolderThatHoldsARunCanBeOpened) {
  for (const char* file :
       {"config.txtpb", "environment.json", "metrics.jsonl", "model.safetensors", "config.json"}) {
    const TemporaryDirectory folder;
    EXPECT_TRUE(says(message_of<DataError>([&] { RunDirectory::open(folder.path()); }),
                     "holds no run: expected config.txtpb"));
    put_file(folder / file, "");
    EXPECT_EQ(RunDirectory::open(folder.path()).path(), folder.path());
  }
}

TEST(RunDirectory, FoldersThatCannotBeUsedAreReportedWithTheReason) {
  const TemporaryDirectory folder;
  put_file(folder / "file", "");
  EXPECT_TRUE(
      says(message_of<DataError>([&] { RunDirectory::create_at(folder / "file", kContinue); }),
           "Not a directory"));
  EXPECT_TRUE(
      says(message_of<DataError>([&] { RunDirectory::create_at(folder / "file/run", kContinue); }),
           "file/run cannot be created: Not a directory"));
  EXPECT_TRUE(says(message_of<DataError>([&] { RunDirectory::create_new("x", folder / "file"); }),
                   "Not a directory"));
  // No folder can be created in /proc, not even by root.
  EXPECT_TRUE(says(message_of<DataError>([&] { RunDirectory::create_new("x", "/proc/self"); }),
                   "cannot be created: "));
}

TEST(RunDirectory, IsARunsWhereNoCheckpointOrModelHasSuchFiles) {
  for (const char* file : {"environment.json", "metrics.jsonl", "run.lock"}) {
    const TemporaryDirectory folder;
    EXPECT_FALSE(RunDirectory::is_run(folder.path()));
    put_file(folder / file, "");
    EXPECT_TRUE(RunDirectory::is_run(folder.path())) << file;
  }
  const TemporaryDirectory folder;
  for (const char* file : {"config.txtpb", "model.safetensors", "config.json"}) {
    put_file(folder / file, "");
  }
  EXPECT_FALSE(RunDirectory::is_run(folder.path()));
}

TEST(RunDirectory, RefusalsSayWhatIsWrong) {
  const TemporaryDirectory folder;
  EXPECT_EQ(message_of<ConfigError>([&] { RunDirectory::create_new("a/b", folder.path()); }),
            "[run directory] \"a/b\" is no name for a run: expected a name without slashes.");
  put_file(folder / "file", "");
  EXPECT_EQ(message_of<ConfigError>([&] { RunDirectory::create_at(folder.path(), kRefuse); }),
            "[run directory] " + folder.path().string() +
                " is not empty: a fresh run needs a folder of its own. Name another, or remove "
                "this one first.");
}

}  // namespace
}  // namespace lockstep::train
