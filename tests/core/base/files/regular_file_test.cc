#include "core/base/files/regular_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>

#include "core/base/files/file_descriptor.h"
#include "core/base/files/mapped_file.h"
#include "core/base/owned_fd.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep {
namespace {

using train::message_of;
using train::put_file;
using train::says;
using train::TemporaryDirectory;

std::string refusal(const std::filesystem::path& path, uint64_t most = kMostTextBytes) {
  return message_of<FileError>([&] { (void)read_whole_file(path, most); });
}

TEST(RegularFile, IsReadWholeOrInPieces) {
  const TemporaryDirectory folder;
  const std::string text(100'000, 'x');
  put_file(folder / "text", text + "end");
  EXPECT_EQ(read_whole_file(folder / "text"), text + "end");
  put_file(folder / "empty", "");
  EXPECT_EQ(read_whole_file(folder / "empty"), "");
  RegularFile file(folder / "text", kMostTextBytes);
  EXPECT_EQ(file.bytes(), text.size() + 3);
  std::vector<std::byte> piece(text.size());
  EXPECT_EQ(file.read(piece), text.size());
  EXPECT_EQ(file.read(piece), 3U);
  EXPECT_EQ(file.read(piece), 0U);
}

TEST(RegularFile, OfTheKernelIsReadThoughItHasNoSize) {
  EXPECT_TRUE(says(read_whole_file("/proc/self/status"), "Name:"));
}

TEST(RegularFile, IsNoFifoDeviceSocketOrFolder) {
  const TemporaryDirectory folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(says(refusal(fifo), fifo + ": it is not a regular file but a FIFO"));
  EXPECT_TRUE(says(message_of<FileError>([&] { MappedFile file(fifo); }), "a FIFO"));
  std::filesystem::create_symlink(fifo, folder / "link");
  EXPECT_TRUE(says(refusal(folder / "link"), "a FIFO"));
  EXPECT_TRUE(says(refusal("/dev/zero"), "a device"));
  EXPECT_TRUE(says(refusal(folder.path()), "Is a directory"));
  EXPECT_TRUE(says(refusal(folder / "gone"), "gone: No such file or directory."));

  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder / "socket";
  if (path.size() >= sizeof address.sun_path) GTEST_SKIP() << "the path is too long for a socket";
  std::strcpy(address.sun_path, path.c_str());
  const OwnedFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(says(refusal(path), "socket: No such device"));
}

TEST(RegularFile, BeyondTheLimitIsRefusedBeforeItIsRead) {
  const TemporaryDirectory folder;
  put_file(folder / "text", "12345");
  EXPECT_EQ(read_whole_file(folder / "text", 5), "12345");
  EXPECT_TRUE(says(refusal(folder / "text", 4), "it has 5 bytes: expected at most 4"));
  // Its size is only a number: the file has no blocks.
  std::filesystem::resize_file(folder / "text", kMostTextBytes + 1);
  EXPECT_TRUE(says(refusal(folder / "text"), "expected at most"));
}

TEST(RegularFile, ThatGrowsBeyondTheLimitIsRefused) {
  EXPECT_TRUE(says(refusal("/proc/self/status", 10), "it grew beyond 10 bytes"));
}

TEST(FileName, StaysInItsFolder) {
  for (const char* name : {"a", ".hidden", "..a", "model-00001-of-00002.safetensors"}) {
    EXPECT_TRUE(is_file_name(name)) << name;
  }
  for (const char* name : {"", ".", "..", "a/b", "/a", "../a", "a\\b"}) {
    EXPECT_FALSE(is_file_name(name)) << name;
  }
  EXPECT_FALSE(is_file_name(std::string_view("a\0b", 3)));
}

TEST(FileDescriptor, DoesNotWaitForTheReaderOfAFifo) {
  const TemporaryDirectory folder;
  const std::filesystem::path fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THROW(FileDescriptor(fifo, O_WRONLY), DataError);
  const OwnedFd reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  FileDescriptor(fifo, O_WRONLY).write(std::as_bytes(std::span("x", 1)));
}

}  // namespace
}  // namespace lockstep
