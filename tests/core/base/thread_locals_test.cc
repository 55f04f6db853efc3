// A program that loads the library while it runs, such as Python, has room for a few thread-locals
// only: glibc sets 1,568 bytes aside for all such libraries, of which two copies of libgomp take
// 264.

#include <gtest/gtest.h>

#include <string_view>

#include "tests/core/base/loaded_library.h"

namespace lockstep {
namespace {

constexpr size_t kMost = 1436;

/// Bytes of thread-locals of the loaded library whose file has this name; 0 if it is not loaded.
size_t thread_local_bytes(std::string_view name) {
  size_t bytes = 0;
  look_at_library(name, [&](const dl_phdr_info& info) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      if (info.dlpi_phdr[i].p_type == PT_TLS) bytes = info.dlpi_phdr[i].p_memsz;
    }
  });
  return bytes;
}

TEST(ThreadLocals, OfTheLibraryFitIntoARunningProgram) {
  const size_t bytes = thread_local_bytes("liblockstep.so");
  if (bytes == 0) GTEST_SKIP() << "the library is linked statically";
  EXPECT_LE(bytes, kMost);
}

}  // namespace
}  // namespace lockstep
