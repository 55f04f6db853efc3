#include "compile/native/kernel_builder.h"

#include <gtest/gtest.h>

#include "compile/native/library_cache.h"
#include "core/base/files/atomic_file.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::compiler {
namespace {

namespace fs = std::filesystem;
using train::TemporaryDirectory;

TEST(KernelBuilder, ReadsTheEnvironmentWhereAKernelIsRequested) {
  if (!find_toolchain({})) GTEST_SKIP() << "there is no C++ compiler";
  const TemporaryDirectory temporary;
  const fs::path compiler = temporary.path() / "cc", go = temporary.path() / "go";
  // Before it tells its version it waits for the variables to be changed.
  write_text(compiler, "#!/bin/sh\nif [ $# = 1 ]; then until [ -e " + go.string() +
                           " ]; do sleep 0.01; done; echo 1; else exec c++ \"$@\"; fi\n");
  fs::permissions(compiler, fs::perms::owner_all);
  const fs::path at_request = temporary.path() / "at_request", later = temporary.path() / "later";
  std::shared_ptr<const PendingKernel> kernel;
  {
    const EnvironmentVariable chosen("CXX", compiler.c_str());
    const EnvironmentVariable cache("LOCKSTEP_CACHE_DIR", at_request.c_str());
    kernel = request_kernel({.text = "extern \"C\" [[gnu::visibility(\"default\")]] void "
                                     "lockstep_loop_kernel() {} // of this test\n",
                             .flags = {},
                             .what = "nothing"});
  }
  const EnvironmentVariable cache("LOCKSTEP_CACHE_DIR", later.c_str());
  write_text(go, "");
  kernel->wait();
  EXPECT_EQ(kernel->failure(), "");
  EXPECT_EQ(LibraryCache(at_request).list().size(), 1U);
  EXPECT_FALSE(fs::exists(later));
}

}  // namespace
}  // namespace lockstep::compiler
