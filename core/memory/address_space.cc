#include "core/memory/address_space.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <system_error>

#include "core/base/check.h"

namespace lockstep {

namespace {

bool is_limited(__rlimit_resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

size_t address_space_left() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  // Read without streams, which allocate. The first number is the size in pages.
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return limit.rlim_cur;
  std::array<char, 64> text{};
  const ssize_t got = ::read(fd, text.data(), text.size() - 1);
  (void)::close(fd);
  const size_t pages = got > 0 ? std::strtoull(text.data(), nullptr, 10) : 0;
  const size_t used = pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<size_t>(used, limit.rlim_cur);
}

bool may_reserve_addresses(size_t bytes) noexcept { return bytes <= address_space_left() / 4; }

void require_addresses(size_t bytes, const char* user) {
  static const bool kLimited = is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA);
  if (!kLimited) return;
  // Mapping them is the one question that the system answers with all its limits; they get no
  // memory before they are used. Until `user` asks, another thread may take addresses for its heap.
  constexpr size_t kThreadHeap = size_t{64} << 20;  // glibc's HEAP_MAX_SIZE
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const addresses = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  const int refusal = errno;
  void* const heap = ::mmap(nullptr, kThreadHeap, PROT_NONE, kFlags, -1, 0);
  const int heap_refusal = errno;
  if (heap != MAP_FAILED) ::munmap(heap, kThreadHeap);
  if (addresses != MAP_FAILED) ::munmap(addresses, bytes);
  LS_CHECK(addresses != MAP_FAILED && heap != MAP_FAILED, OutOfMemoryError,
           "[memory] {} needs {} bytes of addresses, and the system refuses them: {}. Raise the "
           "address space (ulimit -v) or the size of data (ulimit -d), or use fewer threads.",
           user, bytes + kThreadHeap,
           std::generic_category().message(addresses == MAP_FAILED ? refusal : heap_refusal));
}

}  // namespace lockstep
