#include "core/base/files/file_descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/base/check.h"

namespace lockstep {
namespace {

[[noreturn]] void throw_errno(const char* operation, const std::filesystem::path& path) {
  const int code = errno;
  throw DataError(
      fmt::format("[{}] {}: {}.", operation, path.string(), std::generic_category().message(code)));
}

}  // namespace

FileDescriptor::FileDescriptor(std::filesystem::path path, int flags, unsigned mode)
    : path_(std::move(path)) {
  // O_NONBLOCK: opening a FIFO without a reader would wait for one. Writes may wait again.
  do {
    fd_ = ::open(path_.c_str(), flags | O_CLOEXEC | O_NONBLOCK, mode);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) throw_errno("open", path_);
  if (::fcntl(fd_, F_SETFL, flags & ~O_NONBLOCK) != 0) {
    ::close(std::exchange(fd_, -1));
    throw_errno("open", path_);
  }
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

void FileDescriptor::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno("write", path_);
    bytes = bytes.subspan(static_cast<size_t>(written));
    written_ += static_cast<uint64_t>(written);
  }
}

std::vector<std::byte> FileDescriptor::read_to_end() {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) throw_errno("read", path_);
  // One byte more than the size, so that reading a regular file reaches its end without growing.
  std::vector<std::byte> bytes(static_cast<size_t>(status.st_size) + 1);
  size_t filled = 0;
  while (true) {
    if (filled == bytes.size()) bytes.resize(bytes.size() * 2 + 4096);
    const ssize_t got = ::read(fd_, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read", path_);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

void FileDescriptor::truncate(uint64_t bytes) {
  if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) throw_errno("truncate", path_);
}

void FileDescriptor::start_writeback() {
#ifdef SYNC_FILE_RANGE_WRITE
  ::sync_file_range(fd_, static_cast<off64_t>(started_), static_cast<off64_t>(written_ - started_),
                    SYNC_FILE_RANGE_WRITE);
#endif
  started_ = written_;
}

void FileDescriptor::sync() {
  while (::fsync(fd_) != 0) {
    if (errno == EINTR) continue;
    // Some file systems cannot sync a directory; that is not an error.
    if (errno == EINVAL) return;
    throw_errno("fsync", path_);
  }
}

void FileDescriptor::close() {
  if (fd_ < 0) return;
  if (::close(std::exchange(fd_, -1)) != 0) throw_errno("close", path_);
}

}  // namespace lockstep
