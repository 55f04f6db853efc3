#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "compile/native/kernel_builder.h"
#include "compile/program.h"
#include "core/tensor/generator.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/cuda/same_bits.h"
#include "tests/emulation/queued_work.h"

namespace lockstep {

/// Compiled functions whose kernels are made before the first call returns, in a cache of their
/// own.
class WithKernels : public ::testing::Test {
 protected:
  static CompiledFunction with_kernels(compiler::Body body) {
    CompileOptions options;
    options.kernels = KernelBuild::kAtOnce;
    return CompiledFunction(std::move(body), options);
  }
  /// Expects that a record of the body has a kernel for each group, with the bits of the body.
  static CompiledFunction expect_body_s_bits(const compiler::Body& body,
                                             const std::vector<Tensor>& inputs) {
    CompiledFunction compiled = with_kernels(body);
    expect_body_s_bits(compiled, body, inputs);
    EXPECT_THAT(compiled.reasons(), ::testing::IsEmpty());
    for (const auto& program : compiled.programs()) {
      EXPECT_THAT(program->kernels(), Not(::testing::IsEmpty()));
      for (const compiler::GroupKernel* const kernel : program->kernels()) {
        EXPECT_TRUE(kernel->runs()) << kernel->refusal();
      }
    }
    return compiled;
  }
  static void expect_body_s_bits(const CompiledFunction& compiled, const compiler::Body& body,
                                 const std::vector<Tensor>& inputs) {
    manual_seed(7);
    const std::vector<Tensor> expected = body(inputs);
    for (int call = 0; call < 3; ++call) {
      manual_seed(7);
      const std::vector<Tensor> results = compiled(inputs);
      for (size_t i = 0; i < expected.size(); ++i) {
        SCOPED_TRACE("call " + std::to_string(call) + ", result " + std::to_string(i));
        expect_equal_bits(results[i], expected[i]);
      }
    }
  }

  /// Expects that a call queues so many kernels of this name, and nothing else.
  static void expect_kernels(const std::string& name, int count,
                             const std::function<void()>& call) {
    if (!is_emulated()) return;
    emulation::QueuedWork work;
    call();
    EXPECT_THAT(work.take(), ::testing::ElementsAre(::testing::Pair(name, count)));
  }

  train::TemporaryDirectory folder_;
  EnvironmentVariable cache_{"LOCKSTEP_CACHE_DIR", (folder_.path() / "cache").c_str()};
};

}  // namespace lockstep
