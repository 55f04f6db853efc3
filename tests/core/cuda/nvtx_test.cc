#include "core/cuda/nvtx.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace lockstep::cuda {
namespace {

#ifdef LOCKSTEP_NVTX_INJECTION

/// NVTX looks for its tool at the first call of a process.
TEST(Nvtx, RangesOfATool) {
  ASSERT_EQ(setenv("NVTX_INJECTION64_PATH", LOCKSTEP_NVTX_INJECTION, 1), 0);
  ASSERT_NE(nvtx_mirror(), nullptr);
  set_span_mirror(nvtx_mirror());
  const Span before(SpanKind::kRange, "not recorded");
  SpanRecorder recorder;
  recorder.start();
  {
    const Span step(SpanKind::kStep, "step");
    record_moment(SpanKind::kMemory, "allocate");
    const Span forward(SpanKind::kRange, "forward");
  }
  {
    const Span open(SpanKind::kRange, "open");
    recorder.start();  // forgets it, and closes it in the tool when the thread records again
    const Span next(SpanKind::kRange, "next");
  }
  (void)recorder.stop();
  { const Span after(SpanKind::kRange, "not recorded"); }
  set_span_mirror(nullptr);
  void* const tool = dlopen(LOCKSTEP_NVTX_INJECTION, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(tool, nullptr);
  const auto ranges = reinterpret_cast<const char* (*)()>(dlsym(tool, "ranges_so_far"));
  ASSERT_NE(ranges, nullptr);
  EXPECT_EQ(std::string(ranges()), "(step(forward))(open)(next)");
  dlclose(tool);
}

#endif

}  // namespace
}  // namespace lockstep::cuda
