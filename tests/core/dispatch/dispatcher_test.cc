#include "core/dispatch/dispatcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/dispatch/dispatch_trace.h"
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

int64_t early(const Tensor&) { return -1; }
static const Registration early_registration =
    dispatcher().register_kernel("test_early", kernel_record(Key::kCPU, &early, Strides::kAny));

LS_OP(test_early, int64_t(const Tensor&), "test_early(Tensor self) -> int").host_value();
LS_OP(test_answer, int64_t(const Tensor&), "test_answer(Tensor self) -> int").host_value();
LS_OP(test_count, int64_t(int64_t), "test_count(int n) -> int").host_value();
LS_OP(test_where, int64_t(OptionalTensor, std::optional<Device>),
      "test_where(Tensor? like=None, *, Device? device=None) -> int")
    .host_value();
LS_OP(test_same, Tensor(const Tensor&), "test_same(Tensor self) -> Tensor")
    .composite([](const Tensor& self) { return self; });

int64_t answer_42(const Tensor&) { return 42; }
int64_t answer_43(const Tensor&) { return 43; }
int64_t on_cpu(OptionalTensor, std::optional<Device>) { return 0; }
int64_t on_meta(OptionalTensor, std::optional<Device>) { return 1; }

Tensor tensor(Device device = kCPU) { return empty_tensor({2}, DType::kF32, device); }

template <class F>
Registration add(std::string_view op, Key key, F* function,
                 std::source_location where = std::source_location::current()) {
  return dispatcher().register_kernel(op, kernel_record(key, function, Strides::kAny, where));
}
Registration add_boxed(std::string_view op, Key key, BoxedKernel kernel,
                       std::source_location where = std::source_location::current()) {
  KernelRecord record;
  record.key = key;
  record.boxed = kernel;
  record.site = {where.file_name(), where.line()};
  return dispatcher().register_kernel(op, record);
}
Registration add_fallback(Key key, BoxedKernel kernel,
                          std::source_location where = std::source_location::current()) {
  return dispatcher().register_fallback(key, {kernel, {where.file_name(), where.line()}});
}

TEST(Dispatcher, TheNewestKernelWinsAndItsEndBringsTheOneBeforeBack) {
  const Registration first = add("test_answer", Key::kCPU, &answer_42);
  EXPECT_EQ(op_test_answer(tensor()), 42);
  {
    const Registration second = add("test_answer", Key::kCPU, &answer_43);
    EXPECT_EQ(op_test_answer(tensor()), 43);
  }
  EXPECT_EQ(op_test_answer(tensor()), 42);
}

TEST(Dispatcher, AssigningARegistrationUndoesTheOldOne) {
  Registration kept = add("test_answer", Key::kCPU, &answer_42);
  Registration other = add("test_answer", Key::kMeta, &answer_43);
  other = std::move(kept);
  EXPECT_EQ(op_test_answer(tensor()), 42);
  EXPECT_THROW(op_test_answer(tensor(kMeta)), DispatchError);
  other = Registration();
  EXPECT_THROW(op_test_answer(tensor()), DispatchError);
}

TEST(Dispatcher, AKernelMayBeRegisteredBeforeItsOperator) {
  EXPECT_EQ(op_test_early(tensor()), -1);
}

TEST(Dispatcher, AMissingKernelIsAnErrorThatListsWhatIsRegistered) {
  const Registration meta = add("test_answer", Key::kMeta, &answer_42);
  expect_error<DispatchError>([] { op_test_answer(tensor()); }, "[test_answer] no kernel for CPU",
                              "call keys {CPU}", "Registered: Meta.");
}

TEST(Dispatcher, ACallWithoutAnyTensorSaysSo) {
  expect_error<DispatchError>([] { op_test_count(3); }, "[test_count]", "no tensor");
}

TEST(Dispatcher, AnUnknownNameGetsASuggestion) {
  expect_error<DispatchError>([] { dispatcher().find("test_answr"); }, "no operator \"test_answr\"",
                              "Did you mean \"test_answer\"?");
  EXPECT_EQ(dispatcher().find_or_null("test_answr"), nullptr);
  EXPECT_EQ(&dispatcher().find("aten::test_answer"), &op_test_answer.info());
}

TEST(Dispatcher, TheSameRegistrationTwiceIsAnErrorThatNamesTheSite) {
  const auto where = std::source_location::current();
  const Registration once = add("test_answer", Key::kCPU, &answer_42, where);
  expect_error<DispatchError>([&] { add("test_answer", Key::kCPU, &answer_42, where); },
                              "registered twice",
                              "dispatcher_test.cc:" + std::to_string(where.line()));
}

TEST(Dispatcher, AnOperatorDefinedTwiceIsAnErrorThatNamesBothSites) {
  const auto line = [](uint32_t n) { return "dispatcher_test.cc:" + std::to_string(n); };
  const auto where = std::source_location::current();
  expect_error<DispatchError>(
      [&] { OpBuilder<int64_t(const Tensor&)>("test_answer(Tensor self) -> int", where); },
      "defined twice", line(where.line()), line(op_test_answer.info().site().line));
}

TEST(Dispatcher, AKernelOfAnotherTypeIsRefused) {
  expect_error<DispatchError>([] { add("test_answer", Key::kCPU, &on_cpu); }, "the CPU kernel at",
                              "wrong type");
  EXPECT_THROW(op_test_answer(tensor()), DispatchError) << "the refused kernel must not be there";
}

TEST(Dispatcher, KeysThatNobodyHandlesAreSkipped) {
  const Registration kernel = add("test_answer", Key::kCPU, &answer_42);
  const IncludeKeys everything(KeySet::all() - KeySet::backends());
  EXPECT_EQ(op_test_answer(tensor()), 42);
}

int64_t add_one(const Operator& op, KeySet keys, const Tensor& self) {
  const TypedOp<int64_t(const Tensor&)> next(&op);
  return next.redispatch(keys & KeySet::below(Key::kAutocast), self) + 1;
}

TEST(Dispatcher, AHandlerPassesTheCallOnBelowItself) {
  const Registration kernel = add("test_answer", Key::kCPU, &answer_42);
  const Registration outer = add("test_answer", Key::kAutocast, &add_one);
  EXPECT_EQ(op_test_answer(tensor()), 42) << "the key is not in the call's set";
  const IncludeKeys include(Key::kAutocast);
  EXPECT_EQ(op_test_answer(tensor()), 43);
  EXPECT_EQ(op_test_answer.redispatch(Key::kCPU, tensor()), 42);
  const ExcludeKeys exclude(Key::kAutocast);
  EXPECT_EQ(op_test_answer(tensor()), 42) << "exclusion wins";
}

TEST(Dispatcher, AKernelAtAFunctionalKeyMustTakeTheKeySet) {
  expect_error<DispatchError>([] { add("test_answer", Key::kAutocast, &answer_42); },
                              "the Autocast kernel at", "wrong type");
}

std::vector<std::string> g_seen;
void note(const Operator& op, KeySet keys, Stack& stack) {
  g_seen.push_back(op.name() + to_string(keys) + " " + stack.arguments()[0].to_string());
  op.redispatch_boxed(keys & KeySet::below(keys.highest()), stack);
}

TEST(Dispatcher, AFallbackSeesEveryOperatorBoxedAndMayPassItOn) {
  const Registration kernel = add("test_answer", Key::kCPU, &answer_42);
  const Tensor x = tensor();
  g_seen.clear();
  {
    const Registration fallback = add_fallback(Key::kFunctionalize, &note);
    const IncludeKeys include(Key::kFunctionalize);
    EXPECT_EQ(op_test_answer(x), 42);
    EXPECT_TRUE(op_test_same(x).is_same(x));
  }
  const IncludeKeys include(Key::kFunctionalize);
  EXPECT_EQ(op_test_answer(x), 42) << "an undone fallback sees nothing";
  EXPECT_EQ(g_seen, (std::vector<std::string>{"test_answer{Functionalize, CPU} float32[2] on cpu",
                                              "test_same{Functionalize, CPU} float32[2] on cpu"}));
}

TEST(Dispatcher, AFallbackCostsNoReferenceCountOnArguments) {
  static uint32_t uses = 0;
  const Registration counter =
      add_boxed("test_same", Key::kFunctionalize, [](auto&, auto, Stack& stack) {
        uses = stack.arguments()[0].tensor().impl()->use_count();
        stack.results().emplace_back(stack.arguments()[0].own());
      });
  const IncludeKeys include(Key::kFunctionalize);
  const Tensor x = tensor();
  EXPECT_TRUE(op_test_same(x).is_same(x));
  EXPECT_EQ(uses, 1u);
}

TEST(Dispatcher, AKeyHasOneFallbackAndTheSecondIsAnErrorThatNamesBoth) {
  const auto first = std::source_location::current();
  const auto second = std::source_location::current();
  const Registration once = add_fallback(Key::kFunctionalize, &note, first);
  expect_error<DispatchError>([&] { add_fallback(Key::kFunctionalize, &note, second); },
                              "Functionalize already has a fallback", std::to_string(first.line()),
                              std::to_string(second.line()));
}

TEST(Dispatcher, AnOperatorsOwnKernelComesBeforeTheFallback) {
  const Registration kernel = add("test_answer", Key::kCPU, &answer_42);
  const Registration own = add_boxed("test_answer", Key::kFunctionalize, [](auto&, auto, Stack& s) {
    s.results().emplace_back(int64_t{7});
  });
  const Registration fallback = add_fallback(Key::kFunctionalize, &note);
  const IncludeKeys include(Key::kFunctionalize);
  EXPECT_EQ(op_test_answer(tensor()), 7);
}

TEST(Dispatcher, AFallthroughOfOneOperatorComesBeforeTheFallbackOfTheKey) {
  const Registration kernel = add("test_answer", Key::kCPU, &answer_42);
  const Registration fallback = add_fallback(Key::kFunctionalize, &note);
  const IncludeKeys include(Key::kFunctionalize);
  g_seen.clear();
  {
    const Registration skipped =
        dispatcher().register_fallthrough("test_answer", Key::kFunctionalize);
    EXPECT_EQ(op_test_answer(tensor()), 42);
    EXPECT_TRUE(g_seen.empty());
    EXPECT_EQ(op_test_answer.info().explain(Key::kFunctionalize), "skipped");
    (void)op_test_same(tensor());
    EXPECT_EQ(g_seen.size(), 1u) << "other operators still have the fallback";
  }
  EXPECT_EQ(op_test_answer(tensor()), 42);
  EXPECT_EQ(g_seen.size(), 2u);
  expect_error<DispatchError>(
      [] { (void)dispatcher().register_fallthrough("test_answer", Key::kCPU); },
      "backend CPU cannot be skipped");
}

TEST(Dispatcher, TheTableAndItsExplanationComeFromOneDecision) {
  for (const Operator* op : dispatcher().operators()) {
    for (int i = 0; i < kKeyCount; ++i) {
      const Key key = static_cast<Key>(i);
      const Cell& cell = op->cell(key);
      const bool traced = traces_dispatch();
      EXPECT_TRUE(traced || op->entry(key) == cell.entry) << op->name();
      EXPECT_EQ(!op->mask().has(key), cell.reason == Reason::kSkipped) << op->name() << name(key);
      EXPECT_EQ(op->reason(key) == Reason::kMissing, op->explain(key) == "missing") << op->name();
    }
  }
}

TEST(Dispatcher, ADeviceOptionDecidesOverTensors) {
  const Registration cpu = add("test_where", Key::kCPU, &on_cpu);
  const Registration meta = add("test_where", Key::kMeta, &on_meta);
  const Tensor on_a_cpu = tensor();
  const Tensor on_meta_device = tensor(kMeta);
  EXPECT_EQ(op_test_where({}, {}), 0) << "cpu is the default";
  EXPECT_EQ(op_test_where(on_meta_device, {}), 1);
  EXPECT_EQ(op_test_where(on_meta_device, kCPU), 0);
  EXPECT_EQ(op_test_where(on_a_cpu, kMeta), 1);
  // The boxed call dispatches in the same way.
  std::array<Value, 2> arguments = {Value(on_a_cpu), Value(kMeta)};
  Stack stack(arguments);
  op_test_where.info().call_boxed(stack);
  EXPECT_EQ(stack.results()[0].to_int(), 1);
}

TEST(Dispatcher, WithoutTensorsAndDeviceTheThreadsDefaultDecides) {
  const Registration cpu = add("test_where", Key::kCPU, &on_cpu);
  const Registration meta = add("test_where", Key::kMeta, &on_meta);
  const Tensor on_a_cpu = tensor();
  const DefaultDeviceGuard guard(kMeta);
  EXPECT_EQ(op_test_where({}, {}), 1);
  EXPECT_EQ(op_test_where(on_a_cpu, {}), 0);
  EXPECT_EQ(op_test_where({}, kCPU), 0);
  std::array<Value, 2> arguments = {Value(), Value()};
  Stack stack(arguments);
  op_test_where.info().call_boxed(stack);
  EXPECT_EQ(stack.results()[0].to_int(), 1);
}

TEST(Dispatcher, ABoxedCallWantsEveryArgument) {
  Stack empty{std::span<Value>()};
  expect_error<DispatchError>([&] { op_test_answer.info().call_boxed(empty); }, "expected 1",
                              "test_answer(Tensor self) -> int", "got 0");
}

TEST(Dispatcher, DumpGivesAReasonForEveryKey) {
  const Registration kernel = add("test_answer", Key::kCPU, &answer_42);
  const std::string text = dispatcher().dump(op_test_answer.info());
  EXPECT_THAT(text, ::testing::HasSubstr("kernel at "));
  EXPECT_THAT(text, ::testing::ContainsRegex("Meta +missing"));
  EXPECT_THAT(text, ::testing::ContainsRegex("Functionalize +skipped"));
  EXPECT_THAT(dispatcher().dump(op_test_same.info()), ::testing::ContainsRegex("CPU +composite"));
}

TEST(Dispatcher, ListsOperatorsByName) {
  const std::vector<const Operator*> all = dispatcher().operators();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](auto* a, auto* b) { return a->name() < b->name(); }));
  EXPECT_NE(std::find(all.begin(), all.end(), &op_test_answer.info()), all.end());
}

}  // namespace
}  // namespace lockstep
