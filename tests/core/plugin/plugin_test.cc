#include "core/plugin/plugin.h"

#include <fstream>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/node.h"
#include "core/device/copies.h"
#include "core/dispatch/call_op.h"
#include "core/dispatch/mode.h"
#include "core/dispatch/observer.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/conformance/elements.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Doubles = std::vector<double>;

std::filesystem::path library(const std::string& name) {
  return std::filesystem::path(LOCKSTEP_TEST_PLUGINS) / ("lib" + name + ".so");
}

Tensor tensor(Doubles values, DType dtype = DType::kF32) {
  const Tensor made = empty({static_cast<int64_t>(values.size())}, dtype);
  set_elements(made, values);
  return made;
}
Tensor matrix(Doubles values, int64_t columns, DType dtype = DType::kF32) {
  return tensor(values, dtype).view({-1, columns});
}
Doubles elements(const Tensor& tensor) { return elements_as<double>(tensor); }

/// The same plug-in built by the host's compiler, by another compiler, and with another standard
/// library.
class ElementwisePlugin : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(library(GetParam()))) GTEST_SKIP() << "not built here";
    plugin_.emplace(load_library(library(GetParam())));
  }
  std::optional<Plugin> plugin_;
};
INSTANTIATE_TEST_SUITE_P(Builds, ElementwisePlugin,
                         ::testing::Values("elementwise", "elementwise_other_compiler",
                                           "elementwise_libcxx"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ElementwisePlugin, DefinesOperatorsThatAreCalledByName) {
  EXPECT_THAT(plugin_->defined(), Contains("test::scale_clamp_"));
  EXPECT_EQ(plugin_->abi_version(), 5u);
  const Tensor x = tensor({1, 2, 4});
  EXPECT_THAT(elements(call_op("test::scale_clamp", {x, 2})), ElementsAre(2, 4, 6));
  EXPECT_THAT(elements(call_op("test::scale_clamp", {x, 2}, {{"max", 3.5}})),
              ElementsAre(2, 3.5, 3.5));
  EXPECT_THAT(elements(call_op("test::double_it", {x})), ElementsAre(2, 4, 8));
  const std::vector<Tensor> list = {x, x, x};
  EXPECT_THAT(elements(call_op("test::sum_list", {TensorList(list)})), ElementsAre(3, 6, 12));
  EXPECT_THAT(elements(call_op("test::sum_list", {TensorList(list), 0.5})), ElementsAre(1.5, 3, 6));
}

TEST_P(ElementwisePlugin, ItsOperatorsShowInTheDispatcher) {
  const Operator& op = dispatcher().find("test::scale_clamp");
  EXPECT_EQ(op.doc(), "min(scale * self, max), element by element.");
  EXPECT_EQ(op.autocast(), Autocast::kF32);
  EXPECT_NE(op.batching(), nullptr);
  EXPECT_EQ(op.explain(Key::kCPU), "kernel at " + plugin_->path());
  EXPECT_EQ(op.explain(Key::kMeta), "shape rule only");
  EXPECT_THAT(dispatcher().dump(dispatcher().find("test::scale_clamp_")),
              HasSubstr("kernel at " + plugin_->path()));
}

TEST_P(ElementwisePlugin, TheHostCastsAndCopiesForItsKernels) {
  const Tensor x = matrix({1, 2, 3, 4}, 2);
  const int64_t before = hidden_copies().copies;
  EXPECT_THAT(elements(call_op("test::scale_clamp", {x.t(), 1})), ElementsAre(1, 3, 2, 4));
  EXPECT_EQ(hidden_copies().copies, before + 1);
  const Tensor half = call_op("test::scale_clamp", {x.to(DType::kF16), 1});
  EXPECT_EQ(half.dtype(), DType::kF16);
  EXPECT_THAT(elements(half), ElementsAre(1, 2, 3, 4));
}

TEST_P(ElementwisePlugin, FormsWriteInPlaceAndIntoOut) {
  const Tensor x = tensor({1, 2});
  EXPECT_TRUE(call_op("test::scale_clamp_", {x, 2}).is_same(x));
  EXPECT_THAT(elements(x), ElementsAre(2, 4));
  EXPECT_EQ(x.version(), 1u);
  const Tensor out = empty({0});
  EXPECT_TRUE(call_op("test::scale_clamp.out", {x, 2}, {{"out", out}}).is_same(out));
  EXPECT_THAT(elements(out), ElementsAre(4, 6));
  EXPECT_EQ(out.version(), 1u);
  const Tensor ints = tensor({1, 2}, DType::kI64);
  expect_error<DTypeError>(
      [&] {
        call_op("test::scale_clamp_", {ints, 2});
      },
      "expected a floating tensor", plugin_->path());
}

TEST_P(ElementwisePlugin, WrittenArgumentsTakeAnyStridesAndCountVersions) {
  const Tensor x = matrix({1, 2, 3, 4}, 2);
  const Tensor ten = matrix({10, 20, 30, 40}, 2);
  EXPECT_TRUE(call_op("test::add_to_", {x, ten}).is_same(x));
  EXPECT_THAT(elements(x), ElementsAre(11, 22, 33, 44));
  EXPECT_EQ(x.version(), 1u);
  call_op("test::add_to_", {x.t(), ten});
  EXPECT_THAT(elements(x), ElementsAre(21, 52, 53, 84));
  EXPECT_EQ(x.version(), 2u);
  // With one tensor as both arguments, the kernel reads the old values.
  call_op("test::add_to_", {x, x});
  EXPECT_THAT(elements(x), ElementsAre(42, 104, 106, 168));
  const Tensor row = tensor({1, 2}).view({1, 2}).expand({2, 2});
  expect_error<ShapeError>(
      [&] {
        call_op("test::add_to_", {row, ten});
      },
      "[test::add_to_] the elements of self overlap");
  const Tensor base = tensor({1, 2, 3});
  call_op("test::add_to_", {base.as_strided({2, 2}, {1, 1}, 0), tensor({10}).expand({2, 2})});
  EXPECT_THAT(elements(base), ElementsAre(11, 12, 13)) << "windows that meet";
}

TEST_P(ElementwisePlugin, OnMetaTheRuleRunsAlone) {
  const Tensor x = empty({2, 3}, kMeta);
  const Tensor y = call_op("test::scale_clamp", {x, 2});
  EXPECT_EQ(y.device(), kMeta);
  EXPECT_TRUE(same(y.sizes(), {2, 3}));
  EXPECT_TRUE(call_op("test::add_to_", {x, x}).is_same(x));
}

TEST_P(ElementwisePlugin, ArgumentsOnTwoDevicesAreRefused) {
  expect_error<DeviceError>(
      [] {
        call_op("test::both", {empty({2}), empty({2}, kMeta)});
      },
      "[test::both] tensors are on different devices");
}

TEST_P(ElementwisePlugin, DerivativesAreRecordedAndRight) {
  const auto clamp = [](TensorList in) { return call_op("test::scale_clamp", {in[0], 2.5}); };
  const Tensor x = tensor({1, 2, 3, -1}, DType::kF64).set_requires_grad();
  EXPECT_TRUE(gradcheck(TensorFunction(clamp), {x}));
  EXPECT_TRUE(gradgradcheck(TensorFunction(clamp), {x}));
  const Tensor y = call_op("test::scale_clamp", {x, 2.5});
  EXPECT_EQ(y.grad_fn()->name(), "Test::ScaleClampBackward0");
  const auto both = [](TensorList in) { return call_op_tensors("test::both", {in[0], in[1]}); };
  const Tensor z = tensor({4, 5, 6, 7}, DType::kF64).set_requires_grad();
  EXPECT_TRUE(gradcheck(TensorsFunction(both), {x, z}));
  const auto twice = [](TensorList in) { return call_op("test::double_it", {in[0]}); };
  EXPECT_TRUE(gradcheck(TensorFunction(twice), {x}));
}

TEST_P(ElementwisePlugin, InPlaceChangesAreRecorded) {
  const Tensor x = tensor({1, 2}).set_requires_grad();
  const Tensor y = tensor({1, 2}).set_requires_grad();
  const Tensor z = x.mul(y);
  call_op("test::add_to_", {z, y});
  call_op("test::scale_clamp_", {z, 1.5});
  z.sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(1.5, 0));  // the second element was clamped
  EXPECT_THAT(elements(y.grad()), ElementsAre(3, 0));
}

TEST_P(ElementwisePlugin, AnOperatorWithoutDerivativeSaysWhy) {
  const Tensor x = tensor({1, 2}).set_requires_grad();
  const Tensor y = call_op("test::sum_list", {TensorList({x})});
  EXPECT_FALSE(y.requires_grad());
  expect_error<AutogradError>([&] { call_op("test::nothing", {x}); }, "no derivative is declared");
}

TEST_P(ElementwisePlugin, ObserversAndModesSeeItsCalls) {
  struct Names : CallObserver {
    std::vector<std::string> seen;
    void enter(const Operator& op, KeySet, const Stack&) override { seen.push_back(op.name()); }
    void exit(const Operator&, const Stack&) noexcept override {}
  } names;
  struct Counting : DispatchMode {
    int calls = 0;
    void call(const Operator& op, KeySet keys, Stack& stack) override {
      ++calls;
      pass_on(op, keys, stack);
    }
  } mode;
  const Tensor x = tensor({1});
  const ObserverGuard observing(names);
  const ModeGuard guard(mode);
  EXPECT_THAT(elements(call_op("test::double_it", {x})), ElementsAre(2));
  EXPECT_THAT(names.seen, ElementsAre("test::double_it", "add.Tensor"));
  EXPECT_EQ(mode.calls, 1);  // modes see the operators inside a composite
}

TEST_P(ElementwisePlugin, OverridesAllFormsOfABuiltInUntilItIsUnloaded) {
  const Tensor x = tensor({0, 0});
  EXPECT_THAT(plugin_->overridden(), ElementsAre("tanh"));
  EXPECT_THAT(elements(tanh(x)), ElementsAre(7, 7));
  EXPECT_THAT(elements(call_op("tanh_", {tensor({0})})), ElementsAre(7));
  EXPECT_THAT(elements(tanh(matrix({0, 0, 0, 0}, 2).t())), ElementsAre(7, 7, 7, 7));
  EXPECT_EQ(dispatcher().find("tanh").explain(Key::kCPU), "kernel at " + plugin_->path());
  plugin_.reset();
  EXPECT_THAT(elements(tanh(x)), ElementsAre(0, 0));
  EXPECT_THAT(elements(call_op("tanh_", {tensor({0})})), ElementsAre(0));
  EXPECT_THAT(dispatcher().find("tanh").explain(Key::kCPU), HasSubstr("kernels/pointwise/"));
}

TEST_P(ElementwisePlugin, UnloadingTakesItsOperatorsBack) {
  const Operator& op = dispatcher().find("test::scale_clamp");
  const Tensor x = tensor({1, 2}).set_requires_grad();
  const Tensor y = call_op("test::scale_clamp", {x, 2}).sum();
  plugin_.reset();
  EXPECT_EQ(dispatcher().find_or_null("test::scale_clamp"), nullptr);
  EXPECT_EQ(dispatcher().find_or_null("test::scale_clamp_"), nullptr);
  EXPECT_EQ(dispatcher().find_or_null("test::scale_clamp.out"), nullptr);
  // References that are still held report an error.
  EXPECT_FALSE(op.is_defined());
  std::vector<Value> arguments = {x, 2.0, 6.0};
  Stack stack(arguments);
  expect_error<DispatchError>([&] { op.call_boxed(stack); }, "is defined no longer");
  expect_error<AutogradError>([&] { y.backward(); }, "has no derivative any more");
  // The same file can be loaded again.
  const Plugin again = load_library(library(GetParam()));
  EXPECT_THAT(elements(call_op("test::scale_clamp", {tensor({1, 2}), 2})), ElementsAre(2, 4));
  expect_error<AutogradError>([&] { y.backward(); }, "has no derivative any more");
}

TEST_P(ElementwisePlugin, KernelsThatOthersRegisteredWaitForItsReturn) {
  KernelRecord record;
  record.key = Key::kFunctionalize;
  record.boxed = [](const Operator& op, KeySet keys, Stack& stack) {
    op.redispatch_boxed(keys & KeySet::below(Key::kFunctionalize), stack);
  };
  record.site = {__FILE__, __LINE__};
  const auto reason = [] {
    return dispatcher().find("test::double_it").explain(Key::kFunctionalize);
  };
  {
    const Registration kernel = dispatcher().register_kernel("test::double_it", record);
    plugin_.reset();
    plugin_.emplace(load_library(library(GetParam())));
    EXPECT_THAT(reason(), HasSubstr("boxed kernel at "));
    const IncludeKeys include(Key::kFunctionalize);
    EXPECT_THAT(elements(call_op("test::double_it", {tensor({1})})), ElementsAre(2));
  }
  EXPECT_EQ(reason(), "skipped");
}

TEST_P(ElementwisePlugin, ASecondOneOfTheSameNamesIsRefused) {
  expect_error<DispatchError>([&] { (void)load_library(library(GetParam())); }, "test::scale_clamp",
                              "defined twice", plugin_->path());
  EXPECT_THAT(elements(call_op("test::scale_clamp", {tensor({1, 2}), 2})), ElementsAre(2, 4));
}

TEST(Plugin, InPlainCDefinesWithDerivative) {
  const Plugin plugin = load_library(library("plain"));
  const Tensor x = tensor({1, 2}, DType::kF64).set_requires_grad();
  const auto affine = [](TensorList in) { return call_op("plain::affine", {in[0]}); };
  EXPECT_THAT(elements(affine({x})), ElementsAre(3, 5));
  EXPECT_TRUE(gradcheck(TensorFunction(affine), {x}));
  EXPECT_TRUE(gradgradcheck(TensorFunction(affine), {x}));
}

TEST(Plugin, WhatItReportsBecomesAnExceptionWithItsPath) {
  const Plugin plugin = load_library(library("plain"));
  const Tensor x = tensor({1, 2}, DType::kF64);
  expect_error<DTypeError>([&] { call_op("plain::affine", {x.to(DType::kF32)}); },
                           "[plain::affine] expected float64", "the shape rule of", plugin.path());
  expect_error<IndexError>([&] { call_op("plain::fails", {x}); },
                           "[plain::fails] row 7 is out of range", "the kernel of", plugin.path());
  expect_error<Error>([&] { call_op("plain::says_nothing", {x}); },
                      "failed with status 5 and said no reason", plugin.path());
}

TEST(Plugin, MisuseOfHostFunctionsIsAnErrorOfTheCall) {
  const Plugin plugin = load_library(library("plain"));
  const Tensor x = tensor({1, 2}, DType::kF64);
  expect_error<DispatchError>([&] { call_op("plain::reads_too_far", {x}); },
                              "there is no argument 9: expected less than 1");
  expect_error<DispatchError>([&] { call_op("plain::sets_no_size", {x}); }, "size is not set");
  expect_error<DispatchError>([&] { call_op("plain::calls_unknown", {x}); },
                              "there is no operator \"no_such_operator\"");
  expect_error<DispatchError>([&] { call_op("plain::wrong_place", {x}); },
                              "set_result is not for this kind of function");
  EXPECT_THAT(elements(call_op("plain::affine", {x})), ElementsAre(3, 5));
}

TEST(Plugin, OfAnOlderAbiWorks) {
  const Plugin plugin = load_library(library("older"));
  EXPECT_EQ(plugin.abi_version(), 1u);
  EXPECT_THAT(elements(call_op("older::negative", {tensor({1, -2})})), ElementsAre(-1, 2));
  EXPECT_EQ(call_op("older::negative", {tensor({1}, DType::kBF16)}).dtype(), DType::kBF16);
}

TEST(Plugin, OfANewerAbiIsRefused) {
  expect_error<DispatchError>([] { (void)load_library(library("faulty_newer_abi")); },
                              "libfaulty_newer_abi.so: made for version 6", "expected 1 to 5");
}

TEST(Plugin, FilesThatAreNoneAreNamedWithTheReason) {
  expect_error<DataError>([] { (void)load_library("no/such/file.so"); },
                          "no/such/file.so: no such file");
  const std::filesystem::path text = std::filesystem::path(::testing::TempDir()) / "text.so";
  std::ofstream(text) << "not a library";
  expect_error<DispatchError>([&] { (void)load_library(text); }, "text.so: cannot be loaded");
  expect_error<DispatchError>([] { (void)load_library(library("faulty_no_entry")); },
                              "libfaulty_no_entry.so: no plug-in", "ls_plugin_init");
  expect_error<DispatchError>([] { (void)load_library(library("faulty_no_version")); },
                              "no plug-in", "ls_plugin_abi_version");
  expect_error<DispatchError>([] { (void)load_library(library("faulty_unresolved")); },
                              "cannot be loaded", "function_that_no_library_has");
}

TEST(Plugin, ExceptionsThatEscapeItEndTheCall) {
  const Plugin plugin = load_library(library("faulty_throws"));
  expect_error<Error>([] { call_op("faulty::rule", {tensor({1})}); },
                      "[faulty::rule] the shape rule of", "threw an exception: thrown by a rule",
                      plugin.path());
  expect_error<Error>([] { call_op("faulty::body", {tensor({1})}); }, "[faulty::body] the body of",
                      "threw an exception: of a type that is unknown here");
  expect_error<Error>([] { (void)load_library(library("faulty_init_throws")); },
                      "ls_plugin_init of", "no licence found");
}

struct Fault {
  const char* library;
  std::vector<std::string> parts;
};

TEST(Plugin, NothingStaysOfOneThatIsMalformed) {
  const std::vector<Fault> faults = {
      {"schema", {"malformed at position 28", "expected a type", "flaot x"}},
      {"doubled_argument", {"malformed at position 28", "not \"self\" again"}},
      {"default_type", {"malformed at position 34", "a default of type int"}},
      {"required_argument", {"malformed at position 28", "a default for \"y\""}},
      {"stray_words", {"malformed at position 38", "expected the end", "please"}},
      {"no_namespace", {"operator \"second\" has no namespace", "my::second"}},
      {"kernel_type",
       {"[faulty::second] the kernel's type contradicts the schema",
        "expected \"Tensor, float -> Tensor\"", "got \"Tensor, int -> Tensor\""}},
      {"override_type", {"[sigmoid] the kernel's type contradicts the schema"}},
      {"no_rule", {"faulty::second has no shape rule", "or set_dynamic"}},
      {"view_result", {"result 0 of faulty::second would be a view", "a body made of views"}},
      {"list_result", {"result 0 of faulty::second must be a Tensor or a number"}},
      {"dynamic_rule", {"the kernels of faulty::second make its results: expected no rule"}},
      {"dynamic_changes", {"faulty::second changes an argument", "Make two operators of it"}},
      {"number_derivative", {"its results are numbers, which carry no gradient"}},
      {"taken_name", {"[faulty::first] defined twice"}},
      {"unknown_override", {"no operator \"sigmoidd\"", "Did you mean \"sigmoid\"?"}},
      {"save", {"saves \"slef\": expected an argument's name"}},
  };
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.library);
    try {
      (void)load_library(library(std::string("faulty_") + fault.library));
      ADD_FAILURE() << "was loaded";
    } catch (const DispatchError& error) {
      for (const std::string& part : fault.parts) EXPECT_THAT(error.what(), HasSubstr(part));
      EXPECT_THAT(error.what(), HasSubstr("libfaulty_"));
    }
    EXPECT_EQ(dispatcher().find_or_null("faulty::first"), nullptr);
    EXPECT_EQ(dispatcher().find_or_null("faulty::second"), nullptr);
    EXPECT_THAT(elements(relu(tensor({-1, 2}))), ElementsAre(0, 2));
  }
}

}  // namespace
}  // namespace lockstep
