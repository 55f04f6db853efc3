#include "tests/emulation/kernels.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

namespace lockstep::emulation {

namespace {

std::map<std::string_view, Kernel>& kernels() {
  // Never destroyed: static objects may launch kernels at exit.
  static auto* const all = new std::map<std::string_view, Kernel>;
  return *all;
}

}  // namespace

Registration::Registration(const Kernel& kernel) {
  if (kernels().emplace(kernel.name, kernel).second) return;
  std::fprintf(stderr,
               "[emulated GPU] there are two kernels \"%s\": expected names that are unique over "
               "all modules.\n",
               kernel.name);
  std::abort();
}

const Kernel* find_kernel(std::string_view name) {
  const auto found = kernels().find(name);
  return found == kernels().end() ? nullptr : &found->second;
}

}  // namespace lockstep::emulation
