#include "train/report/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/base/files/file_descriptor.h"
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

TEST(RunLock, SaysWhoHoldsIt) {
  const TemporaryDirectory folder;
  const RunDirectory directory =
      RunDirectory::create_at(folder / "run", RunDirectory::Existing::kRefuse);
  std::array<char, 256> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  const std::string owner = fmt::format("host {}, pid {}", host.data(), ::getpid());
  const RunLock lock(directory);
  EXPECT_EQ(RunLock::holder(directory), owner);
  EXPECT_EQ(message_of<ConfigError>([&] { const RunLock second(directory); }),
            fmt::format("[run directory] {}: a run is there already ({}). Wait for it, stop it, or "
                        "name another folder.",
                        directory.path().string(), owner));
  std::filesystem::remove(directory.lock());
  EXPECT_TRUE(says(message_of<ConfigError>([&] { const RunLock second(directory); }),
                   "(which one is not known: its run.lock was removed)"));
}

TEST(RunLock, OfARunThatChangesNoFileLeavesItsOwnAsItWas) {
  const TemporaryDirectory folder;
  const RunDirectory directory =
      RunDirectory::create_at(folder / "run", RunDirectory::Existing::kRefuse);
  put_file(directory.lock(), "host old, pid 1");
  const auto time = std::filesystem::file_time_type() + std::chrono::hours(24);
  std::filesystem::last_write_time(directory.lock(), time);
  {
    RunLock lock(directory);
    EXPECT_NE(file_content(directory.lock()), "host old, pid 1");
    lock.leave_no_trace();
    EXPECT_TRUE(RunLock::holder(directory)) << "it is held all the same";
  }
  EXPECT_EQ(file_content(directory.lock()), "host old, pid 1");
  EXPECT_EQ(std::filesystem::last_write_time(directory.lock()), time);
}

// The tests of waiting take the best of several attempts, as a machine that does other things may
// delay any of them.
constexpr int kLockAttempts = 10;

TEST(RunLock, WaitsForAnotherThatAsksWhoHoldsIt) {
  const TemporaryDirectory folder;
  const RunDirectory directory =
      RunDirectory::create_at(folder / "run", RunDirectory::Existing::kRefuse);
  bool was_had = false;
  for (int attempt = 0; attempt < kLockAttempts && !was_had; ++attempt) {
    const FileDescriptor asked(directory.path(), O_RDONLY | O_DIRECTORY);
    ASSERT_EQ(::flock(asked.get(), LOCK_SH | LOCK_NB), 0);
    std::atomic<bool> begins = false;
    std::thread asker([&] {
      while (!begins) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(::flock(asked.get(), LOCK_UN), 0);
    });
    begins = true;
    try {
      const RunLock lock(directory);
      was_had = true;
    } catch (const ConfigError&) {
    }
    asker.join();
  }
  EXPECT_TRUE(was_had);
}

TEST(RunLock, IsHadWithoutWaitingWhereNobodyHoldsIt) {
  const TemporaryDirectory folder;
  const RunDirectory directory =
      RunDirectory::create_at(folder / "run", RunDirectory::Existing::kRefuse);
  auto fastest = std::chrono::steady_clock::duration::max();
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    const RunLock lock(directory);
    fastest = std::min(fastest, std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(fastest, std::chrono::milliseconds(10));
}

/// A process that locks the directory and ends: by itself, or as one that is killed.
std::string owner_that_ended(const RunDirectory& directory, bool by_itself) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (by_itself) {
      const RunLock lock(directory);
    } else {
      (void)new RunLock(directory);
    }
    ::_exit(0);
  }
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  std::array<char, 256> host{};
  EXPECT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  return fmt::format("host {}, pid {}", host.data(), child);
}

TEST(RunLock, OfAProcessThatWasKilledIsInheritedOnce) {
  const TemporaryDirectory folder;
  const RunDirectory directory =
      RunDirectory::create_at(folder / "run", RunDirectory::Existing::kRefuse);
  const std::string owner = owner_that_ended(directory, /*by_itself=*/false);
  EXPECT_EQ(file_content(directory.lock()), owner);
  EXPECT_EQ(RunLock::inherit(directory, owner + "0"), nullptr) << "another process";
  {
    const auto lock = RunLock::inherit(directory, owner);
    ASSERT_NE(lock, nullptr);
    EXPECT_EQ(RunLock::holder(directory), lock->owner());
    EXPECT_EQ(RunLock::inherit(directory, owner), nullptr);
  }
  EXPECT_EQ(RunLock::inherit(directory, owner), nullptr) << "there was an heir";
  const RunLock next(directory);
}

TEST(RunLock, OfAProcessThatEndedByItselfOrLivesIsNotInherited) {
  const TemporaryDirectory folder;
  const RunDirectory directory =
      RunDirectory::create_at(folder / "run", RunDirectory::Existing::kRefuse);
  const std::string owner = owner_that_ended(directory, /*by_itself=*/true);
  EXPECT_EQ(file_content(directory.lock()), owner + ", ended");
  EXPECT_EQ(RunLock::inherit(directory, owner), nullptr);
  EXPECT_EQ(file_content(directory.lock()), owner + ", ended");
  const RunLock held(directory);
  EXPECT_EQ(RunLock::inherit(directory, held.owner()), nullptr);
}

}  // namespace
}  // namespace lockstep::train
