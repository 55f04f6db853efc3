#include "tests/emulation/modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "core/base/owned_fd.h"

namespace lockstep::emulation {

std::shared_ptr<void> load_module(const void* image) {
  if (std::memcmp(image, ELFMAG, SELFMAG) != 0) return nullptr;
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof(header));
  // The table of sections is the last thing in the file.
  const size_t bytes = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  // The loader takes files of one path for one library, so each needs its own while it is loaded.
  std::string path = (std::filesystem::temp_directory_path() / "emulated-XXXXXX").string();
  const OwnedFd file(mkstemp(path.data()));
  if (!file) return nullptr;
  const bool written = write(file.get(), image, bytes) == static_cast<ssize_t>(bytes);
  void* const library = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path.c_str());
  if (library == nullptr) return nullptr;
  return {library, [](void* loaded) { dlclose(loaded); }};
}

const Kernel* find_kernel(void* module, const char* name) {
  return static_cast<const Kernel*>(dlsym(module, ("ls_module_" + std::string(name)).c_str()));
}

}  // namespace lockstep::emulation
