#include "dist/transport/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "core/base/check.h"

namespace lockstep::dist {
namespace {

std::string text(int error) { return std::system_category().message(error); }

void check_file_size_limit(size_t bytes) {
  // Beyond the limit the system would not return an error but send SIGXFSZ, which ends the process.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  LS_CHECK(bytes <= limit.rlim_cur, OutOfMemoryError,
           "[shared memory] {} bytes are more than this process may put in a file ({}). Raise "
           "`ulimit -f`, or set LOCKSTEP_SHM=0 to do without shared memory.",
           bytes, limit.rlim_cur);
}

/// Returns the machine's available memory in bytes, or 0 if unknown.
size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  size_t kilobytes = 0;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

void check_available(size_t bytes) {
  // If too much is requested, the system does not fail the call: its OOM killer ends processes.
  const size_t available = available_memory();
  LS_CHECK(
      available == 0 || bytes <= available / 2, OutOfMemoryError,
      "[shared memory] {} bytes for messages within this machine, of {} that are available: "
      "expected at most half of them. Free memory, start fewer ranks, or set LOCKSTEP_SHM=0 to "
      "do without shared memory.",
      bytes, available);
}

/// Allocates the first `bytes` bytes of a file.
int allocate_file(int fd, size_t bytes) {
  int error = 0;
  do {
    error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  return error;
}

/// Allocates mapped pages, which only Linux 5.14 and newer can: older ones return EINVAL.
int allocate_pages(std::byte* begin, size_t bytes) {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers do not define
  int error = 0;
  do {
    error = madvise(begin, bytes, kPopulateWrite) == 0 ? 0 : errno;
  } while (error == EINTR || error == EAGAIN);
  return error;
}

void check_allocated(int error, size_t bytes) {
  LS_CHECK(error == 0, OutOfMemoryError,
           "[shared memory] {} bytes for messages within this machine: {}. Free memory, or set "
           "LOCKSTEP_SHM=0 to do without shared memory.",
           bytes, text(error));
}

}  // namespace

SharedMemory::SharedMemory(OwnedFd fd, size_t bytes) : fd_(std::move(fd)), size_(bytes) {
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  const int error = errno;
  LS_CHECK(address != MAP_FAILED, OutOfMemoryError,
           "[shared memory] {} bytes cannot be mapped: {}. Raise `ulimit -v`, or set "
           "LOCKSTEP_SHM=0 to do without shared memory.",
           bytes, text(error));
  data_ = static_cast<std::byte*>(address);
}

SharedMemory SharedMemory::create(size_t bytes, size_t now) {
  check_file_size_limit(bytes);
  check_available(now);
  OwnedFd fd(memfd_create("lockstep", MFD_CLOEXEC));
  LS_CHECK(fd, BackendError, "[shared memory] memfd_create failed: {}.", text(errno));
  // A page that cannot be had is an error here: at its first access it would be a SIGBUS.
  check_allocated(allocate_file(fd.get(), now), now);
  check_allocated(ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0 ? 0 : errno, bytes);
  SharedMemory memory(std::move(fd), bytes);
  if (now < bytes && allocate_pages(memory.data_, 1) == EINVAL) {
    check_available(bytes);
    check_allocated(allocate_file(memory.fd(), bytes), bytes);
  }
  return memory;
}

void SharedMemory::allocate(size_t offset, size_t bytes) const {
  LS_ASSERT(offset <= size_ && bytes <= size_ - offset);
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page * page;
  check_available(bytes);
  const int error = allocate_pages(data_ + begin, offset + bytes - begin);
  if (error == EINVAL) return;  // `create` has allocated all
  check_allocated(error, bytes);
}

SharedMemory SharedMemory::open(int pid, int fd, size_t bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  OwnedFd own(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY));
  const int error = errno;
  LS_CHECK(own, BackendError,
           "[shared memory] cannot open memory of process {} ({}): {}. Processes of one job on one "
           "machine must be of one user and see each other; otherwise set LOCKSTEP_SHM=0 to do "
           "without shared memory.",
           pid, path, text(error));
  struct stat status {};
  LS_CHECK(fstat(own.get(), &status) == 0 && static_cast<size_t>(status.st_size) == bytes,
           BackendError,
           "[shared memory] {} is not the memory of {} bytes that its process told of: it may be "
           "another process, of another container. Set LOCKSTEP_SHM=0 to do without shared memory.",
           path, bytes);
  return SharedMemory(std::move(own), bytes);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) (void)munmap(data_, size_);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace lockstep::dist
