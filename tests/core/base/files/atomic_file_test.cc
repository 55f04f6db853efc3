#include "core/base/files/atomic_file.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <functional>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"

namespace {

/// Called with every descriptor that this thread syncs, before it is synced.
thread_local std::function<void(int)> on_sync;

}  // namespace

/// Takes the place of the C library's function, for liblockstep as well.
extern "C" int fsync(int fd) {
  static const auto real = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "fsync"));
  if (on_sync) on_sync(fd);
  return real(fd);
}

namespace lockstep {
namespace {

using train::file_content;
using train::message_of;
using train::put_file;
using train::says;
using train::TemporaryDirectory;

size_t entries(const std::filesystem::path& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(AtomicFile, AppearsOnlyWhenPublished) {
  const TemporaryDirectory folder;
  AtomicFile file(folder / "a");
  file.write(std::as_bytes(std::span("text", 4)));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  file.publish();
  EXPECT_EQ(file_content(folder / "a"), "text");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, AnUnpublishedFileLeavesNothingAndKeepsTheOldContents) {
  const TemporaryDirectory folder;
  put_file(folder / "a", "old");
  { AtomicFile(folder / "a").write(std::as_bytes(std::span("new", 3))); }
  EXPECT_EQ(file_content(folder / "a"), "old");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, SyncsTheContentsBeforeTheRenameAndTheFolderAfterIt) {
  const TemporaryDirectory folder;
  std::vector<std::string> synced;
  on_sync = [&](int fd) {
    const auto path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd));
    const bool is_folder = std::filesystem::is_directory(path);
    synced.push_back(fmt::format("{} of {} bytes, {} published", is_folder ? "folder" : "file",
                                 is_folder ? 0 : std::filesystem::file_size(path),
                                 std::filesystem::exists(folder / "a") ? "was" : "not"));
  };
  write_text(folder / "a", "text");
  on_sync = nullptr;
  EXPECT_THAT(synced, testing::ElementsAre("file of 4 bytes, not published",
                                           "folder of 0 bytes, was published"));
}

TEST(AtomicFile, AFailedWriteKeepsTheOldContentsAndNamesTheReason) {
  const TemporaryDirectory folder;
  put_file(folder / "a", "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message =
      message_of<DataError>([&] { write_text(folder / "a", std::string(10000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(says(message, "File too large"));
  EXPECT_EQ(file_content(folder / "a"), "old");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, ADestinationThatIsAFolderIsRefused) {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder / "a");
  EXPECT_TRUE(
      says(message_of<DataError>([&] { write_text(folder / "a", "x"); }), "Is a directory"));
  EXPECT_EQ(entries(folder.path()), 1u);
}

}  // namespace
}  // namespace lockstep
