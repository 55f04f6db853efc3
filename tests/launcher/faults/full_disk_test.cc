// Full or read-only disks: `lockstep train` on a file system of a few pages.

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "launcher/exit_code.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

/// A separate file system in the folder "disk", in a mount namespace of this process and its
/// children, so that it disappears with them. Skips its tests where mounting is not allowed.
class SmallDisk : public Program {
 protected:
  SmallDisk() { std::filesystem::create_directory(disk()); }
  ~SmallDisk() override {
    if (!mounted_) return;
    EXPECT_EQ(::umount2(disk().c_str(), MNT_DETACH), 0) << std::strerror(errno);
  }
  /// Mounts a tmpfs of `kibibytes` on "disk". Returns false and sets `reason_` if that is not
  /// allowed.
  bool mount(int kibibytes) {
    const auto refused = [&](const char* what) {
      reason_ =
          fmt::format("a file system cannot be mounted here: {}: {}", what, std::strerror(errno));
      return false;
    };
    if (::geteuid() != 0) {
      errno = EPERM;
      return refused("not root");
    }
    if (::unshare(CLONE_NEWNS) != 0) return refused("unshare");
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return refused("private");
    const std::string size = fmt::format("size={}k", kibibytes);
    if (::mount("tmpfs", disk().c_str(), "tmpfs", 0, size.c_str()) != 0) return refused("mount");
    mounted_ = true;
    return true;
  }
  /// Remounts "disk": "size=4m" resizes it, MS_RDONLY makes it read-only.
  void remount(unsigned long flags, const char* options) const {
    ASSERT_EQ(::mount("none", disk().c_str(), nullptr, MS_REMOUNT | flags, options), 0)
        << std::strerror(errno);
  }

  std::filesystem::path disk() const { return folder_ / "disk"; }
  /// Whether a partially written file or folder is left over in the run directory "disk/out".
  bool leaves_partial() const {
    const std::filesystem::recursive_directory_iterator entries(disk() / "out");
    return std::any_of(begin(entries), end(entries), [](const auto& entry) {
      return entry.path().filename().string().find(".partial-") != std::string::npos;
    });
  }
  /// A config with weights of 262 KiB and checkpoints of 785 KiB, including AdamW's state.
  void put_large_config() const {
    put_file(folder_ / "run.txtpb",
             "model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 64 } }\n"
             "data { random {} }\n"
             "train { steps: 6 batch_size: 2 }\n");
  }
  bool exists(std::string_view name) const { return std::filesystem::exists(disk() / name); }

  std::string reason_;

 private:
  bool mounted_ = false;
};

TEST_F(SmallDisk, FillingUpWhileStepsAreLoggedEndsWithThree) {
  if (!mount(64)) GTEST_SKIP() << reason_;
  put_config("run.txtpb");
  const Result result = run("train run.txtpb --run-dir disk/out --steps 5000");
  EXPECT_EQ(result.status, kData) << result.errors;
  EXPECT_TRUE(says(result.errors, "DataError: [write] disk/out/"));
  EXPECT_TRUE(says(result.errors, "No space left on device"));
  EXPECT_FALSE(exists("out/model.safetensors"));
  EXPECT_FALSE(leaves_partial());
  // The history logged until then is readable; its last line may be cut off.
  EXPECT_EQ(run("compare disk/out disk/out").status, 0);
}

TEST_F(SmallDisk, FillingUpWhileACheckpointIsSavedLeavesNoneAndNoWaste) {
  if (!mount(500)) GTEST_SKIP() << reason_;
  put_large_config();
  const Result result = run("train run.txtpb --run-dir disk/out");
  EXPECT_EQ(result.status, kCheckpoint) << result.errors;
  EXPECT_TRUE(says(result.errors, "CheckpointError: [write] disk/out/checkpoints/"));
  EXPECT_TRUE(says(result.errors, "No space left on device"));
  EXPECT_FALSE(exists("out/checkpoints/step-00000006"));
  EXPECT_FALSE(exists("out/model.safetensors"));
  EXPECT_FALSE(leaves_partial());
  EXPECT_GT(std::filesystem::space(disk()).available, 400u << 10);
  const std::string metrics = file_content(disk() / "out/metrics.jsonl");
  EXPECT_EQ(std::ranges::count(metrics, '\n'), 6);
}

TEST_F(SmallDisk, ARunWhoseLastWeightsDidNotFitEndsWellOnceThereIsRoom) {
  if (!mount(960)) GTEST_SKIP() << reason_;
  put_large_config();
  const Result full = run("train run.txtpb --run-dir disk/out");
  EXPECT_EQ(full.status, kCheckpoint) << full.errors;
  EXPECT_TRUE(says(full.errors, "CheckpointError: [write] disk/out/model.safetensors"));
  EXPECT_TRUE(says(full.errors, "No space left on device"));
  EXPECT_TRUE(exists("out/checkpoints/step-00000006"));
  EXPECT_FALSE(exists("out/model.safetensors"));
  EXPECT_FALSE(leaves_partial());

  remount(0, "size=4m");
  const Result again = run("train run.txtpb --run-dir disk/out");
  EXPECT_EQ(again.status, 0) << again.errors;
  ASSERT_EQ(run("train run.txtpb --run-dir undisturbed").status, 0);
  EXPECT_EQ(file_content(disk() / "out/model.safetensors"),
            file_content(folder_ / "undisturbed/model.safetensors"));
}

TEST_F(SmallDisk, AFullDiskIsNamedBeforeTheFirstStep) {
  if (!mount(64)) GTEST_SKIP() << reason_;
  put_config("run.txtpb");
  put_file(disk() / "filler", std::string(64 << 10, 'x'));
  const Result result = run("train run.txtpb --run-dir disk");
  EXPECT_EQ(result.status, kData) << result.errors;
  EXPECT_TRUE(says(result.errors, "DataError: [write] disk/"));
  EXPECT_TRUE(says(result.errors, "No space left on device"));
  EXPECT_EQ(result.errors.find("step 1/"), std::string::npos);
}

TEST_F(SmallDisk, AReadOnlyFileSystemEndsWithThree) {
  if (!mount(64)) GTEST_SKIP() << reason_;
  std::filesystem::create_directory(disk() / "empty");
  remount(MS_RDONLY, nullptr);
  put_config("run.txtpb");
  for (const char* folder : {"disk/new", "disk/empty"}) {
    const Result result = run(fmt::format("train run.txtpb --run-dir {}", folder));
    EXPECT_EQ(result.status, kData) << result.errors;
    EXPECT_TRUE(
        says(result.errors, fmt::format("DataError: [run directory] {} cannot be", folder)));
    EXPECT_TRUE(says(result.errors, "Read-only file system"));
  }
}

using ReadOnlyFolder = Program;

TEST_F(ReadOnlyFolder, EndsWithThree) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write to every folder";
  put_config("run.txtpb");
  std::filesystem::create_directory(folder_ / "out");
  std::filesystem::permissions(folder_ / "out", std::filesystem::perms(0555));
  const Result result = run("train run.txtpb --run-dir out");
  EXPECT_EQ(result.status, kData) << result.errors;
  EXPECT_TRUE(says(result.errors, "DataError: [run directory] out cannot be written to"));
  EXPECT_TRUE(says(result.errors, "Permission denied"));
}

}  // namespace
}  // namespace lockstep::launcher
