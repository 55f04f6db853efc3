#include "train/report/run_lock.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

TEST(RunLock, HasAHolderWhileItIsHeldOnly) {
  const TemporaryDirectory folder;
  const RunDirectory directory =
      RunDirectory::create_at(folder / "run", RunDirectory::Existing::kRefuse);
  EXPECT_EQ(RunLock::holder(directory), std::nullopt);
  {
    const RunLock lock(directory);
    ASSERT_TRUE(RunLock::holder(directory));
    EXPECT_TRUE(RunLock::holder(directory)->find("pid") != std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::exists(directory.lock()));
  EXPECT_EQ(RunLock::holder(directory), std::nullopt);
}

TEST(RunLock, IsHeldAlsoWhereItsFileWasRemoved) {
  const TemporaryDirectory folder;
  const RunDirectory directory =
      RunDirectory::create_at(folder / "run", RunDirectory::Existing::kRefuse);
  {
    const RunLock lock(directory);
    std::filesystem::remove(directory.lock());
    ASSERT_TRUE(RunLock::holder(directory));
    EXPECT_TRUE(RunLock::holder(directory)->find("was removed") != std::string::npos);
  }
  EXPECT_EQ(RunLock::holder(directory), std::nullopt);
}

}  // namespace
}  // namespace lockstep::train
