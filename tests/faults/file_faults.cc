// libfile_faults.so, for LD_PRELOAD: counts a program's calls that change files, and makes one of
// them fail. Tests use it to interrupt a program at every point where its files are incomplete.
//
// Counted, from 1 in the order in which the process makes them, are the calls
//   open, openat, creat (for writing or with O_CREAT), write, pwrite, writev, ftruncate, truncate,
//   fsync, fdatasync, rename, renameat, renameat2, mkdir, mkdirat, unlink, unlinkat, rmdir, remove,
//   link, linkat, symlink, symlinkat, and close of files that are open for writing,
// and their 64-bit names, on the folder FILE_FAULTS_FOLDER and all paths below it. The folder need
// not exist yet. A rename or link counts under its new name. Calls that only read are counted with
// FILE_FAULTS_READS=1 (read_faults.cc), and calls inside glibc (fopen, fclose) never. Children
// inherit the count at the fork, and start at 1 again after exec.
//
//   FILE_FAULTS_AT=N           the number of the call that fails; without it none does
//   FILE_FAULTS_ACTION=ACTION
//     kill                     SIGKILL instead of the call
//     kill_after               SIGKILL after the call
//     half                     a write writes half of its bytes, then SIGKILL; other calls: kill
//     short                    a write writes half of its bytes and returns their number; other
//                              calls succeed
//     enospc, eio, erofs, eintr, eacces, estale
//                              the call fails with this errno and has no effect, except that a
//                              failing close closes
//     enospc_from              the disk is full: from call N on, calls that need space fail with
//                              ENOSPC (writes, and those that make a new name, except rename);
//                              other calls succeed
//   FILE_FAULTS_COUNT=FILE     appends a line "N CALL PATH" to FILE before each call is made, so
//                              that FILE has one line per started call
//
//   FILE_FAULTS_RECORD=FILE    appends every change that was made, with the bytes written, for a
//   test
//                              that replays them (call.h)
//
// Invalid settings end the program with status 99 and a message. Thread-safe.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <vector>

#include "tests/faults/call.h"

using lockstep::faults::Call;
using lockstep::faults::ErrnoGuard;
using lockstep::faults::Kind;
using lockstep::faults::make;
using lockstep::faults::path_at;
using lockstep::faults::path_of;
using lockstep::faults::record;

namespace {

template <class Function>
int make_at(const char* name, int folder, const char* path, Kind kind, const Function& function) {
  return make(Call(name, path_at(folder, path), kind), function);
}

bool exists(const std::string& path) {
  const ErrnoGuard guard;
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0;
}

template <class Function>
int make_open(const char* name, int folder, const char* path, int flags, const Function& function) {
  const bool changes_files = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  const bool counts = changes_files || lockstep::faults::counts_reads();
  const std::string full = counts ? path_at(folder, path) : "";
  const bool is_new = (flags & O_CREAT) != 0 && !full.empty() && !exists(full);
  const int fd = make(Call(name, full, is_new ? Kind::kNewName : Kind::kOther), function);
  if (fd >= 0 && is_new) record("create", full);
  if (fd >= 0 && !is_new && (flags & O_TRUNC) != 0) record("truncate", full);
  return fd;
}

/// Records a write that ended at the file's position, and returns its result.
ssize_t recorded(int fd, const void* bytes, ssize_t written) {
  if (written > 0) {
    const ErrnoGuard guard;
    const off_t end = ::lseek(fd, 0, SEEK_CUR);
    record("write", path_of(fd), "", end - written, bytes, static_cast<size_t>(written));
  }
  return written;
}

/// Records a call that succeeded, and returns its result.
int recorded(const char* name, const std::string& path, int result, const std::string& other = "") {
  if (result == 0) record(name, path, other);
  return result;
}

/// Whether open has a mode argument.
bool takes_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

/// The first `bytes` bytes of `parts`.
std::vector<iovec> head(const iovec* parts, int count, size_t bytes) {
  std::vector<iovec> result;
  for (int i = 0; i < count && bytes > 0; ++i) {
    result.push_back({parts[i].iov_base, std::min(bytes, parts[i].iov_len)});
    bytes -= result.back().iov_len;
  }
  return result;
}

}  // namespace

// The function that the program would call without this library.
#define REAL(name) \
  static auto* const real = reinterpret_cast<decltype(&name)>(::dlsym(RTLD_NEXT, #name))
// The 64-bit name of a function; with a 64-bit off_t both are the same.
#define ALSO(other, name) decltype(name) other __attribute__((alias(#name)))
static_assert(sizeof(off_t) == 8);

extern "C" {

int open(const char* path, int flags, ...) {
  REAL(open);
  va_list arguments;
  va_start(arguments, flags);
  const unsigned mode = takes_mode(flags) ? va_arg(arguments, unsigned) : 0;
  va_end(arguments);
  return make_open("open", AT_FDCWD, path, flags, [&] { return real(path, flags, mode); });
}
ALSO(open64, open);

int openat(int folder, const char* path, int flags, ...) {
  REAL(openat);
  va_list arguments;
  va_start(arguments, flags);
  const unsigned mode = takes_mode(flags) ? va_arg(arguments, unsigned) : 0;
  va_end(arguments);
  return make_open("openat", folder, path, flags, [&] { return real(folder, path, flags, mode); });
}
ALSO(openat64, openat);

int creat(const char* path, mode_t mode) {
  REAL(creat);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  return make_open("creat", AT_FDCWD, path, kFlags, [&] { return real(path, mode); });
}
ALSO(creat64, creat);

ssize_t write(int fd, const void* bytes, size_t size) {
  REAL(write);
  const Call call("write", path_of(fd), Kind::kWrite);
  return recorded(fd, bytes, make(call, [&] { return real(fd, bytes, call.share(size)); }));
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  REAL(pwrite);
  const Call call("pwrite", path_of(fd), Kind::kWrite);
  return make(call, [&] { return real(fd, bytes, call.share(size), offset); });
}
ALSO(pwrite64, pwrite);

ssize_t writev(int fd, const iovec* parts, int count) {
  REAL(writev);
  const Call call("writev", path_of(fd), Kind::kWrite);
  size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
  if (call.share(bytes) == bytes) return make(call, [&] { return real(fd, parts, count); });
  const std::vector<iovec> some = head(parts, count, call.share(bytes));
  return make(call, [&] { return real(fd, some.data(), static_cast<int>(some.size())); });
}

int fsync(int fd) {
  REAL(fsync);
  const int result = make(Call("fsync", path_of(fd), Kind::kOther), [&] { return real(fd); });
  return recorded("fsync", path_of(fd), result);
}

int fdatasync(int fd) {
  REAL(fdatasync);
  return make(Call("fdatasync", path_of(fd), Kind::kOther), [&] { return real(fd); });
}

int close(int fd) {
  REAL(close);
  const bool writes = [fd] {
    const ErrnoGuard guard;
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
  }();
  const Call call("close", writes ? path_of(fd) : "", Kind::kOther);
  if (call.fails()) {
    const ErrnoGuard guard;
    real(fd);
  }
  return make(call, [&] { return real(fd); });
}

int ftruncate(int fd, off_t size) noexcept {
  REAL(ftruncate);
  const int result =
      make(Call("ftruncate", path_of(fd), Kind::kOther), [&] { return real(fd, size); });
  if (result == 0) record("truncate", path_of(fd), "", size);
  return result;
}
ALSO(ftruncate64, ftruncate);

int truncate(const char* path, off_t size) noexcept {
  REAL(truncate);
  return make_at("truncate", AT_FDCWD, path, Kind::kOther, [&] { return real(path, size); });
}
ALSO(truncate64, truncate);

int rename(const char* from, const char* to) noexcept {
  REAL(rename);
  const int result = make_at("rename", AT_FDCWD, to, Kind::kOther, [&] { return real(from, to); });
  return recorded("rename", path_at(AT_FDCWD, from), result, path_at(AT_FDCWD, to));
}

int renameat(int from_folder, const char* from, int folder, const char* to) noexcept {
  REAL(renameat);
  return make_at("renameat", folder, to, Kind::kOther,
                 [&] { return real(from_folder, from, folder, to); });
}

int renameat2(int from_folder, const char* from, int folder, const char* to,
              unsigned flags) noexcept {
  REAL(renameat2);
  const int result = make_at("renameat2", folder, to, Kind::kOther,
                             [&] { return real(from_folder, from, folder, to, flags); });
  const char* name = (flags & RENAME_EXCHANGE) != 0 ? "exchange" : "rename";
  return recorded(name, path_at(from_folder, from), result, path_at(folder, to));
}

int mkdir(const char* path, mode_t mode) noexcept {
  REAL(mkdir);
  const int result =
      make_at("mkdir", AT_FDCWD, path, Kind::kNewName, [&] { return real(path, mode); });
  return recorded("mkdir", path_at(AT_FDCWD, path), result);
}

int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  REAL(mkdirat);
  return make_at("mkdirat", folder, path, Kind::kNewName, [&] { return real(folder, path, mode); });
}

int unlink(const char* path) noexcept {
  REAL(unlink);
  const int result = make_at("unlink", AT_FDCWD, path, Kind::kOther, [&] { return real(path); });
  return recorded("remove", path_at(AT_FDCWD, path), result);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  REAL(unlinkat);
  const int result =
      make_at("unlinkat", folder, path, Kind::kOther, [&] { return real(folder, path, flags); });
  return recorded("remove", path_at(folder, path), result);
}

int rmdir(const char* path) noexcept {
  REAL(rmdir);
  const int result = make_at("rmdir", AT_FDCWD, path, Kind::kOther, [&] { return real(path); });
  return recorded("remove", path_at(AT_FDCWD, path), result);
}

int remove(const char* path) noexcept {
  REAL(remove);
  const int result = make_at("remove", AT_FDCWD, path, Kind::kOther, [&] { return real(path); });
  return recorded("remove", path_at(AT_FDCWD, path), result);
}

int link(const char* from, const char* to) noexcept {
  REAL(link);
  return make_at("link", AT_FDCWD, to, Kind::kNewName, [&] { return real(from, to); });
}

int linkat(int from_folder, const char* from, int folder, const char* to, int flags) noexcept {
  REAL(linkat);
  return make_at("linkat", folder, to, Kind::kNewName,
                 [&] { return real(from_folder, from, folder, to, flags); });
}

int symlink(const char* target, const char* path) noexcept {
  REAL(symlink);
  return make_at("symlink", AT_FDCWD, path, Kind::kNewName, [&] { return real(target, path); });
}

int symlinkat(const char* target, int folder, const char* path) noexcept {
  REAL(symlinkat);
  return make_at("symlinkat", folder, path, Kind::kNewName,
                 [&] { return real(target, folder, path); });
}

}  // extern "C"
