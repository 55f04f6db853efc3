#include "core/base/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "core/base/regular_file.h"

namespace lockstep {

MappedFile::MappedFile(const std::filesystem::path& path, Pages pages) {
  const RegularFile file(path, kMostMappedBytes);
  const auto size = static_cast<size_t>(file.bytes());
  if (size == 0) return;  // mmap refuses length zero
  const int flags = MAP_PRIVATE | (pages == Pages::kReadAtOnce ? MAP_POPULATE : 0);
  void* address = ::mmap(nullptr, size, PROT_READ, flags, file.descriptor(), 0);
  if (address == MAP_FAILED) throw FileError(path, std::generic_category().message(errno));
  owner_ = std::shared_ptr<const void>(address, [size](void* begin) { ::munmap(begin, size); });
  bytes_ = {static_cast<const std::byte*>(address), size};
}

}  // namespace lockstep
