#include "core/base/files/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>
#include <system_error>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/mutex.h"

namespace lockstep {
namespace {

/// A mapping that the handler of SIGBUS knows. `size` is set last and cleared first.
struct GuardedMapping {
  std::atomic<size_t> size = 0;
  std::atomic<std::byte*> begin = nullptr;
  std::atomic<bool> failed = false;
  std::string path;
  dev_t device = 0;
  ino_t inode = 0;

  bool holds(const void* address) const {
    const auto* at = static_cast<const std::byte*>(address);
    const size_t bytes = size.load(std::memory_order_acquire);
    return bytes > 0 && at >= begin && at < begin + bytes;
  }
};

/// All mappings: a handler can neither lock nor allocate, so their number is limited.
struct GuardedMappings {
  static constexpr size_t kMost = 16384;
  Mutex mutex;  ///< held to change `all` and `highest`; the handler reads them without it
  std::array<GuardedMapping, kMost> all;
  std::atomic<size_t> highest = 0;  ///< those from here on were never used
  struct sigaction before {};
};

/// Never destroyed: mappings may outlive static objects.
GuardedMappings& mappings() {
  static GuardedMappings& kMappings = *new GuardedMappings;
  return kMappings;
}

GuardedMapping* mapping_at(const void* address) {
  GuardedMappings& known = mappings();
  const size_t count = known.highest.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    if (known.all[i].holds(address)) return &known.all[i];
  }
  return nullptr;
}

/// Puts zeros where the rest of a file cannot be read, and notes that.
void replace_by_zeros(int signal, siginfo_t* info, void* context) {
  const int code = errno;
  if (GuardedMapping* mapping = mapping_at(info->si_addr)) {
    const auto page_size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto page = reinterpret_cast<uintptr_t>(info->si_addr) / page_size * page_size;
    const auto end = reinterpret_cast<uintptr_t>(mapping->begin.load()) + mapping->size;
    void* zeros = ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    mapping->failed = true;
    errno = code;
    if (zeros != MAP_FAILED) return;
  }
  const struct sigaction& before = mappings().before;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    ::signal(signal, SIG_DFL);  // the access is made again and ends the process
  }
}

void install_handler() {
  struct sigaction action {};
  action.sa_sigaction = replace_by_zeros;
  // SA_ONSTACK: oneDNN keeps data below the stack pointer (launcher/stop_signals.h).
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGBUS, &action, &mappings().before);
}

GuardedMapping& add_mapping(void* address, size_t size, const std::filesystem::path& path,
                            const struct stat& status) {
  [[maybe_unused]] static const bool kInstalled = (install_handler(), true);
  GuardedMappings& known = mappings();
  const MutexLock lock(known.mutex);
  auto* free = std::ranges::find_if(
      known.all, [](const GuardedMapping& mapping) { return mapping.begin == nullptr; });
  LS_CHECK(free != known.all.end(), DataError, "[map] {}: more than {} files are mapped.",
           path.string(), GuardedMappings::kMost);
  free->path = path.string();
  free->device = status.st_dev;
  free->inode = status.st_ino;
  free->failed = false;
  free->begin = static_cast<std::byte*>(address);
  free->size.store(size, std::memory_order_release);
  const auto index = static_cast<size_t>(free - known.all.begin());
  if (known.highest <= index) known.highest.store(index + 1, std::memory_order_release);
  return *free;
}

void remove_mapping(GuardedMapping& mapping) {
  void* address = mapping.begin;
  const size_t size = mapping.size.exchange(0);
  ::munmap(address, size);
  const MutexLock lock(mappings().mutex);
  mapping.begin = nullptr;
}

/// Whether the file is shorter than its mapping. A file of that name that is another one now is not
/// what is mapped.
bool has_shrunk(const GuardedMapping& mapping) {
  struct stat status {};
  return ::stat(mapping.path.c_str(), &status) == 0 && status.st_dev == mapping.device &&
         status.st_ino == mapping.inode && static_cast<size_t>(status.st_size) < mapping.size;
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const RegularFile file(path, kMostMappedBytes);
  const auto size = static_cast<size_t>(file.bytes());
  if (size == 0) return;  // mmap refuses length zero
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) {
    throw FileError(path, std::generic_category().message(errno));
  }
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (address == MAP_FAILED) throw FileError(path, std::generic_category().message(errno));
  try {
    GuardedMapping& guarded = add_mapping(address, size, path, status);
    owner_ =
        std::shared_ptr<const void>(address, [&guarded](const void*) { remove_mapping(guarded); });
  } catch (const DataError&) {
    ::munmap(address, size);
    throw;
  }
  bytes_ = {static_cast<const std::byte*>(address), size};
}

void check_mapped(const void* address) {
  const GuardedMapping* mapping = mapping_at(address);
  if (mapping == nullptr) return;
  LS_CHECK(
      !mapping->failed && !has_shrunk(*mapping), DataError,
      "[map] {}: expected {} bytes, as when it was opened, but not all can be read now. It was "
      "shortened meanwhile, or its disk failed.",
      mapping->path, mapping->size.load());
}

}  // namespace lockstep
