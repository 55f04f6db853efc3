#include "compile/native/load_inline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/native/toolchain.h"
#include "core/dispatch/call_op.h"
#include "core/ops/factory/factory.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

constexpr const char* kTwice = R"(#include "core/plugin/plugin_wrapper.h"

using namespace lockstep::plugin;

void kernel(Result out, View self) {
  for (int64_t i = 0; i < self.numel(); ++i) out.data<float>()[i] = 2 * self.data<float>()[i];
}
void rule(Rule& rule, View self) { rule.result_like(self); }

LS_PLUGIN(library) {
  library.define("mine::twice(Tensor self) -> Tensor", "2 self.").rule(rule).kernel(kernel);
}
)";

class LoadInline : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!compiler::find_toolchain({})) GTEST_SKIP() << "there is no C++ compiler";
  }

  train::TemporaryDirectory folder_;
  EnvironmentVariable cache_{"LOCKSTEP_CACHE_DIR", (folder_.path() / "cache").c_str()};
};

TEST_F(LoadInline, AddsTheOperatorsOfTheText) {
  for (int load = 0; load < 2; ++load) {
    const Plugin plugin = load_inline({.text = kTwice});
    EXPECT_THAT(plugin.defined(), ::testing::Contains("mine::twice"));
    EXPECT_EQ(call_op("mine::twice", {ones({3})}).data<float>()[2], 2);
  }
}

TEST_F(LoadInline, ShowsTheCompilersErrorsAtTheLinesOfTheText) {
  std::string text = kTwice;
  text.replace(text.find("2 * self"), 8, "2 * unknown");
  expect_error<Error>([&] { (void)load_inline({.text = text, .name = "twice.cc"}); },
                      "twice.cc:6:", "unknown");
}

TEST_F(LoadInline, RefusesATextThatIsNoPlugin) {
  expect_error<DispatchError>([] { (void)load_inline({.text = "int f() { return 1; }"}); },
                              "no plug-in");
}

TEST_F(LoadInline, RefusesANameThatNoLineCanHave) {
  expect_error<Error>([] { (void)load_inline({.text = kTwice, .name = "a\"b"}); }, "holds a quote");
}

}  // namespace
}  // namespace lockstep
