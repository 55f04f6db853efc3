#include "train/report/fresh_directory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

TEST(FreshDirectory, RemovesWhatAFailedStartMade) {
  const TemporaryDirectory folder;
  {
    FreshDirectory fresh(folder / "a/b/run");
    fs::create_directories(folder / "a/b/run");
    put_file(folder / "a/b/run/run.lock", "x");
    fresh.use(folder / "a/b/run");
  }
  EXPECT_FALSE(fs::exists(folder / "a"));
  EXPECT_TRUE(fs::exists(folder.path()));
}

TEST(FreshDirectory, KeepsWhatWasThereAndWhatHoldsSomething) {
  const TemporaryDirectory folder;
  fs::create_directories(folder / "runs/other");
  {
    FreshDirectory fresh(folder / "runs/new");
    fs::create_directories(folder / "runs/new");
    fresh.use(folder / "runs/new/");
  }
  EXPECT_FALSE(fs::exists(folder / "runs/new"));
  EXPECT_TRUE(fs::exists(folder / "runs/other"));
  {
    FreshDirectory fresh(folder / "runs/full");
    fs::create_directories(folder / "runs/full");
    put_file(folder / "runs/full/metrics.jsonl", "x");
    fresh.use(folder / "runs/full");
  }
  EXPECT_TRUE(fs::exists(folder / "runs/full/metrics.jsonl"));
  {
    FreshDirectory fresh(folder / "runs/other");
    fresh.use(folder / "runs/other");
  }
  EXPECT_TRUE(fs::exists(folder / "runs/other"));
}

TEST(FreshDirectory, KeepsARunThatHasBegun) {
  const TemporaryDirectory folder;
  {
    FreshDirectory fresh(folder / "run");
    fs::create_directories(folder / "run");
    fresh.use(folder / "run");
    fresh.keep();
  }
  EXPECT_TRUE(fs::exists(folder / "run"));
}

}  // namespace
}  // namespace lockstep::train
