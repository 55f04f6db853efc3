// Passes over graphs that plug-ins add.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "compile/compile.h"
#include "compile/program.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/plugin/graph_passes.h"
#include "core/plugin/plugin.h"
#include "tests/core/expect_error.h"
#include "tests/plugins/built_plugin.h"

namespace lockstep::compiler {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

Tensor cosine(const Tensor& x) { return cos(x).mul(2); }

Plugin plugin_of(const char* pass) {
  return load_library(built_plugin(std::string("graph_pass_") + pass));
}

TEST(PluginPasses, RunOnFunctionsThatAreCompiledWhileThePluginIsLoaded) {
  const Tensor x = arange(4, DType::kF32);
  const CompiledTensorFunction before = compile(cosine);
  std::optional<CompiledTensorFunction> with;
  {
    const Plugin plugin = plugin_of("sines");
    EXPECT_THAT(plugin_passes(), SizeIs(1));
    with.emplace(compile(cosine));
    for (int call = 0; call < 2; ++call) {
      EXPECT_TRUE(equal(before(x), cosine(x)));
      // The call that records runs the function itself.
      EXPECT_TRUE(equal((*with)(x), call == 0 ? cosine(x) : sin(x).mul(2)));
    }
  }
  EXPECT_THAT(plugin_passes(), IsEmpty());
  EXPECT_TRUE(equal((*with)(x), sin(x).mul(2)));  // what was compiled stays
  expect_error<DispatchError>([&] { (*with)(arange(5, DType::kF32)); },
                              "[test_pass] the plug-in of this graph pass was unloaded");
}

TEST(PluginPasses, DerivativesHaveThemToo) {
  const Plugin plugin = plugin_of("sines");
  const CompiledTensorFunction compiled = compile([](const Tensor& x) { return sin(x); });
  const Tensor x = arange(4, DType::kF32).set_requires_grad();
  for (int call = 0; call < 2; ++call) {
    const Tensor got = grad({compiled(x).sum()}, {x})[0];
    EXPECT_TRUE(equal(got, call == 0 ? cos(x.detach()) : sin(x.detach()))) << call;
  }
}

TEST(PluginPasses, GraphsThatAreNotSoundAreRefusedByName) {
  const Tensor x = arange(4, DType::kF32);
  {
    const Plugin plugin = plugin_of("garbled");
    expect_error<Error>([&] { compile(cosine)(x); }, "what pass test_pass gives is no graph",
                        "operator");
  }
  {
    const Plugin plugin = plugin_of("narrowed");
    expect_error<Error>([&] { compile(cosine)(x); }, "inputs of pass test_pass",
                        "expected float32[4], got float32[3]");
  }
  {
    const Plugin plugin = plugin_of("throws");
    expect_error<Error>([&] { compile(cosine)(x); },
                        "[test_pass] thrown by a pass (the graph pass of",
                        "libgraph_pass_throws.so");
  }
}

}  // namespace
}  // namespace lockstep::compiler
