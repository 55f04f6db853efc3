#include "core/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "core/base/check.h"
#include "core/base/file_descriptor.h"

namespace lockstep {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const FileDescriptor file(path, O_RDONLY);
  struct stat status {};
  LS_CHECK(::fstat(file.get(), &status) == 0, DataError, "[map] {}: {}.", path.string(),
           std::generic_category().message(errno));
  LS_CHECK(!S_ISDIR(status.st_mode), DataError, "[map] {}: Is a directory.", path.string());
  LS_CHECK(S_ISREG(status.st_mode), DataError, "[map] {} is not a regular file.", path.string());
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return;  // mmap refuses length zero
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  LS_CHECK(address != MAP_FAILED, DataError, "[map] {}: {}.", path.string(),
           std::generic_category().message(errno));
  owner_ = std::shared_ptr<const void>(address, [size](void* begin) { ::munmap(begin, size); });
  bytes_ = {static_cast<const std::byte*>(address), size};
}

}  // namespace lockstep
