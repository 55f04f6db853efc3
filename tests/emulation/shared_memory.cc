#include "tests/emulation/shared_memory.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "tests/emulation/block.h"

namespace lockstep::emulation {

namespace {

constexpr size_t kBehind = 512;
alignas(128) unsigned char g_dynamic[kMostSharedBytes + kBehind];

using Ranges = std::vector<std::span<unsigned char>>;

/// Address ranges of the variables that device.h tags as __shared__, from the symbol table of their
/// ELF file.
Ranges shared_variables(const unsigned char* file, uintptr_t base) {
  const auto& header = *reinterpret_cast<const ElfW(Ehdr)*>(file);
  const std::span sections(reinterpret_cast<const ElfW(Shdr)*>(file + header.e_shoff),
                           header.e_shnum);
  Ranges found;
  for (const ElfW(Shdr) & section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    const char* const names =
        reinterpret_cast<const char*>(file + sections[section.sh_link].sh_offset);
    for (const ElfW(Sym) & symbol :
         std::span(reinterpret_cast<const ElfW(Sym)*>(file + section.sh_offset),
                   section.sh_size / sizeof(ElfW(Sym)))) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF ||
          std::strstr(names + symbol.st_name, "B9ls_shared") == nullptr) {
        continue;
      }
      found.emplace_back(reinterpret_cast<unsigned char*>(base + symbol.st_value), symbol.st_size);
    }
  }
  return found;
}

Ranges shared_variables(const link_map& object) {
  const char* const path = *object.l_name == '\0' ? "/proc/self/exe" : object.l_name;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) return {};
  const auto bytes = static_cast<size_t>(status.st_size);
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return {};
  Ranges found = shared_variables(static_cast<const unsigned char*>(mapped), object.l_addr);
  munmap(mapped, bytes);
  return found;
}

}  // namespace

void fill_static_shared_memory(const void* code) {
  static auto* const known = new std::map<const link_map*, Ranges>;  // see kernels.cc
  Dl_info info{};
  link_map* object = nullptr;
  if (dladdr1(code, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0) return;
  auto found = known->find(object);
  if (found == known->end()) found = known->emplace(object, shared_variables(*object)).first;
  for (const auto& range : found->second) std::memset(range.data(), kUnwritten, range.size());
}

void* dynamic_shared_memory() { return g_dynamic; }

void fill_dynamic_shared_memory(size_t bytes) {
  std::memset(g_dynamic, kUnwritten, bytes + kBehind);
}

bool nothing_behind_dynamic_shared_memory(size_t bytes) {
  return std::ranges::all_of(std::span(g_dynamic).subspan(bytes, kBehind),
                             [](unsigned char byte) { return byte == kUnwritten; });
}

}  // namespace lockstep::emulation
