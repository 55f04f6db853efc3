// Calls that only read: counted like those in file_faults.cc if FILE_FAULTS_READS is set. They are
//   open and openat (in file_faults.cc), read, pread, opendir, fdopendir, readdir, stat, lstat,
//   fstat, fstatat, access, flock
// and their 64-bit names. Folders are listed by libstdc++ with opendir and readdir.

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/faults/call.h"

using lockstep::faults::Call;
using lockstep::faults::counts_reads;
using lockstep::faults::Kind;
using lockstep::faults::make;
using lockstep::faults::path_at;
using lockstep::faults::path_of;

namespace {

template <class Function>
auto make_of(const char* name, int fd, const Function& function) {
  return make(Call(name, counts_reads() ? path_of(fd) : "", Kind::kOther), function);
}

template <class Function>
int make_at(const char* name, int folder, const char* path, const Function& function) {
  return make(Call(name, counts_reads() ? path_at(folder, path) : "", Kind::kOther), function);
}

}  // namespace

#define REAL(name) \
  static auto* const real = reinterpret_cast<decltype(&name)>(::dlsym(RTLD_NEXT, #name))

extern "C" {

ssize_t read(int fd, void* bytes, size_t size) {
  REAL(read);
  return make_of("read", fd, [&] { return real(fd, bytes, size); });
}

ssize_t pread(int fd, void* bytes, size_t size, off_t offset) {
  REAL(pread);
  return make_of("pread", fd, [&] { return real(fd, bytes, size, offset); });
}

DIR* opendir(const char* path) {
  REAL(opendir);
  const Call call("opendir", counts_reads() ? path_at(AT_FDCWD, path) : "", Kind::kOther);
  return call.fails() ? nullptr : real(path);
}

DIR* fdopendir(int fd) {
  REAL(fdopendir);
  const Call call("fdopendir", counts_reads() ? path_of(fd) : "", Kind::kOther);
  return call.fails() ? nullptr : real(fd);
}

dirent* readdir(DIR* folder) {
  REAL(readdir);
  const Call call("readdir", counts_reads() ? path_of(::dirfd(folder)) : "", Kind::kOther);
  return call.fails() ? nullptr : real(folder);
}

int stat(const char* path, struct stat* status) noexcept {
  REAL(stat);
  return make_at("stat", AT_FDCWD, path, [&] { return real(path, status); });
}

int lstat(const char* path, struct stat* status) noexcept {
  REAL(lstat);
  return make_at("lstat", AT_FDCWD, path, [&] { return real(path, status); });
}

int fstatat(int folder, const char* path, struct stat* status, int flags) noexcept {
  REAL(fstatat);
  return make_at("fstatat", folder, path, [&] { return real(folder, path, status, flags); });
}

int fstat(int fd, struct stat* status) noexcept {
  REAL(fstat);
  return make_of("fstat", fd, [&] { return real(fd, status); });
}

int access(const char* path, int mode) noexcept {
  REAL(access);
  return make_at("access", AT_FDCWD, path, [&] { return real(path, mode); });
}

int flock(int fd, int operation) noexcept {
  REAL(flock);
  return make_of("flock", fd, [&] { return real(fd, operation); });
}

}  // extern "C"
