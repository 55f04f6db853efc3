#include "core/base/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "core/base/check.h"

namespace lockstep::dist {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_errno(const char* operation, const fs::path& path) {
  const int code = errno;
  throw DataError(
      fmt::format("[{}] {}: {}.", operation, path.string(), std::generic_category().message(code)));
}

class Descriptor {
 public:
  Descriptor(fs::path path, int flags) : path_(std::move(path)) {
    do {
      fd_ = ::open(path_.c_str(), flags | O_CLOEXEC, 0644);
    } while (fd_ < 0 && errno == EINTR);
    if (fd_ < 0) throw_errno("open", path_);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void write(std::string_view rest) {
    while (!rest.empty()) {
      const ssize_t written = ::write(fd_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw_errno("write", path_);
      rest.remove_prefix(static_cast<size_t>(written));
    }
  }
  void sync() {
    while (::fsync(fd_) != 0) {
      if (errno == EINTR) continue;
      if (errno == EINVAL) return;  // file systems that cannot sync a folder
      throw_errno("fsync", path_);
    }
  }
  void close() {
    if (::close(std::exchange(fd_, -1)) != 0) throw_errno("close", path_);
  }

 private:
  fs::path path_;
  int fd_ = -1;
};

}  // namespace

void write_whole_file(const fs::path& path, std::string_view content) {
  fs::path partial = path;
  partial += fmt::format(".partial-{}", ::gettid());
  Descriptor file(partial, O_WRONLY | O_CREAT | O_TRUNC);
  try {
    file.write(content);
    file.sync();
    file.close();
    if (std::rename(partial.c_str(), path.c_str()) != 0) throw_errno("rename", path);
  } catch (...) {
    ::unlink(partial.c_str());
    throw;
  }
  Descriptor(path.has_parent_path() ? path.parent_path() : ".", O_RDONLY | O_DIRECTORY).sync();
}

}  // namespace lockstep::dist
