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
#include "tests/emulation/races.h"

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
      auto* place = reinterpret_cast<unsigned char*>(base + symbol.st_value);
      // Of a template's variable there is one in the process, maybe that of another object.
      if (ELF64_ST_BIND(symbol.st_info) != STB_LOCAL) {
        void* const chosen = dlsym(RTLD_DEFAULT, names + symbol.st_name);
        if (chosen != nullptr) place = static_cast<unsigned char*>(chosen);
      }
      found.emplace_back(place, symbol.st_size);
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

/// dladdr1 knows it as well, but looks for the symbol: most of an emulated launch would go there.
const link_map* object_of(const void* code) {
  dl_find_object object{};
  return _dl_find_object(const_cast<void*>(code), &object) == 0 ? object.dlfo_link_map : nullptr;
}

const Ranges& known_variables(const link_map& object) {
  static auto* const known = new std::map<const link_map*, Ranges>;  // see kernels.cc
  auto found = known->find(&object);
  if (found == known->end()) found = known->emplace(&object, shared_variables(object)).first;
  return found->second;
}

/// Memory of a block that begins: the host's writes are no more compared with those of its threads
/// than what other blocks did.
void fill_and_forget(unsigned char* memory, size_t bytes) {
  races::forget(memory, bytes);
  std::memset(memory, kUnwritten, bytes);
  races::forget(memory, bytes);
}

}  // namespace

void fill_static_shared_memory(const void* code) {
  const link_map* const object = object_of(code);
  if (object == nullptr) return;
  for (const auto& range : known_variables(*object)) {
    if (is_own_code(code)) {
      fill_and_forget(range.data(), range.size());
    } else {
      std::memset(range.data(), kUnwritten, range.size());
    }
  }
}

bool is_own_code(const void* code) { return object_of(code) == object_of(g_dynamic); }

void prepare_forgetting(const void* address, size_t bytes) {
  Ranges all = known_variables(*object_of(g_dynamic));
  all.emplace_back(g_dynamic, sizeof(g_dynamic));
  all.emplace_back(static_cast<unsigned char*>(const_cast<void*>(address)), bytes);
  const auto begin = [](const auto& range) { return range.data(); };
  const auto end = [](const auto& range) { return range.data() + range.size(); };
  races::set_forgettable(begin(*std::ranges::min_element(all, {}, begin)),
                         end(*std::ranges::max_element(all, {}, end)));
}

void* dynamic_shared_memory() { return g_dynamic; }

void fill_dynamic_shared_memory(size_t bytes) { fill_and_forget(g_dynamic, bytes + kBehind); }

bool nothing_behind_dynamic_shared_memory(size_t bytes) {
  return std::ranges::all_of(std::span(g_dynamic).subspan(bytes, kBehind),
                             [](unsigned char byte) { return byte == kUnwritten; });
}

}  // namespace lockstep::emulation
