#include "core/memory/address_space.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

namespace lockstep {

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

}  // namespace lockstep
