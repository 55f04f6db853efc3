// model.recompute changes no bit on a GPU either.

#include <gtest/gtest.h>

#include "tests/emulation/fake_cublas_lt.h"
#include "tests/train/tiny_run.h"

namespace lockstep::train {
namespace {

TEST(CudaRecompute, ChangesNoBit) {
  const TemporaryDirectory folder;
  const cuda::CublasLtScope library(cuda::CublasLtScope::Library::kPresent);
  for (const char* model :
       {"gpt2 { layers: 2 dropout: 0 } ", "gpt2 { layers: 2 dropout: 0.1 }",
        "llama { context_length: 16 layers: 2 heads: 4 kv_heads: 2 width: 32 }"}) {
    const auto with = [&](const char* recompute) {
      return trace(tiny_run(folder, fmt::format("device: \"cuda\" precision: BF16_MIXED train {{ "
                                                "batch_size: 2 }} model {{ {} recompute: {} }}",
                                                model, recompute)),
                   2);
    };
    const Trace plain = with("NONE");
    EXPECT_EQ(with("CHEAP"), plain) << model;
    EXPECT_EQ(with("BLOCK"), plain) << model;
  }
}

}  // namespace
}  // namespace lockstep::train
