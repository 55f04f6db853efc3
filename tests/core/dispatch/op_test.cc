#include "core/dispatch/op.h"

#include <gtest/gtest.h>

#include "core/dispatch/kernel.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

Outputs scale_rule(const Tensor& self, Scalar, MemoryFormat) {
  return one(to_dims(self.sizes()), self.dtype());
}
Gradients no_gradients(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients([&] { return grad; });
}

LS_OP(test_scale, Tensor(const Tensor&, Scalar, MemoryFormat),
      "test_scale(Tensor self, Scalar by=1.0, *, MemoryFormat format=contiguous_format) -> Tensor")
    .doc("self times by.")
    .structured(&scale_rule)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .tag("test")
    .saves({"self for self", "output"})
    .derivative(&no_gradients);
LS_OP(test_named, Tensor(const Tensor&, Scalar, MemoryFormat),
      "test_named.Scalar(Tensor self, Scalar by, MemoryFormat format) -> Tensor")
    .structured(&scale_rule)
    .in_place()
    .out("Scalar_out");

TEST(Op, DerivesTheInPlaceSchema) {
  const Operator& op = op_test_scale.in_place.info();
  EXPECT_EQ(op.name(), "test_scale_");
  EXPECT_EQ(op.schema().to_string(),
            "test_scale_(Tensor(a!) self, Scalar by=1.0, *, MemoryFormat format=contiguous_format) "
            "-> Tensor(a!)");
  EXPECT_EQ(op.alias_argument(), 0);
}

TEST(Op, DerivesTheOutSchema) {
  const Operator& op = op_test_scale.out.info();
  EXPECT_EQ(op.schema().to_string(),
            "test_scale.out(Tensor self, Scalar by=1.0, *, MemoryFormat format=contiguous_format, "
            "Tensor(a!) out) -> Tensor(a!)");
  EXPECT_EQ(op.alias_argument(), 3);
  EXPECT_EQ(op_test_named.out.info().schema().to_string(),
            "test_named.Scalar_out(Tensor self, Scalar by, MemoryFormat format, *, Tensor(a!) out) "
            "-> Tensor(a!)");
  EXPECT_EQ(op_test_named.in_place.info().name(), "test_named_.Scalar");
}

TEST(Op, FormsKeepDefaultsAndShareWhatTheBlockSays) {
  const Operator& root = op_test_scale.info();
  for (const Operator* form : {&op_test_scale.in_place.info(), &op_test_scale.out.info()}) {
    EXPECT_EQ(form->schema().arguments[1].default_value.to_scalar().kind(), DType::kF64);
    EXPECT_EQ(&form->root(), &root);
    EXPECT_EQ(form->doc(), "self times by.");
    EXPECT_EQ(form->autocast(), Autocast::kF32);
    EXPECT_TRUE(form->derivative().exists());
    EXPECT_TRUE(form->has_in_place());
    EXPECT_EQ(&dispatcher().find(form->name()), form);
  }
  EXPECT_EQ(root.form(), OpForm::kFunctional);
  EXPECT_EQ(op_test_scale.out.info().form(), OpForm::kOut);
  EXPECT_EQ(root.tags(), std::vector<std::string>{"test"});
}

TEST(Op, RefusesASignatureThatContradictsTheSchema) {
  using One = OpBuilder<Tensor(const Tensor&)>;
  expect_error<DispatchError>(
      [] {
        One("test_mismatch(Tensor self, int n) -> Tensor").composite([](const Tensor& t) {
          return t;
        });
      },
      "[test_mismatch]", "expected 2 arguments, got 1");
  using Two = OpBuilder<Tensor(const Tensor&, double)>;
  const auto refuses = [](const char* schema, const char* wanted, const char* got) {
    SCOPED_TRACE(schema);
    expect_error<DispatchError>(
        [&] { Two(schema).composite([](const Tensor& t, double) { return t; }); },
        "differ at argument", wanted, got);
  };
  refuses("test_mismatch(Tensor self, int n) -> Tensor", "expected int", "got float");
  refuses("test_mismatch(Tensor self, float? n) -> Tensor", "expected float?", "got float");
  refuses("test_mismatch(Tensor self, float[] n) -> Tensor", "expected float[]", "got float");
  refuses("test_mismatch(Tensor? self, float n) -> Tensor", "expected Tensor?", "got Tensor");
  EXPECT_EQ(dispatcher().find_or_null("test_mismatch"), nullptr) << "it must not be defined";
}

TEST(Op, AKernelThatWaitedWithTheWrongTypeIsReportedAndTheOperatorStaysUndefined) {
  const Registration waiting = dispatcher().register_kernel(
      "test_never", kernel_record(Key::kCPU, &scale_rule, Strides::kAny));
  expect_error<DispatchError>(
      [] { OpBuilder<int64_t(const Tensor&)>("test_never(Tensor self) -> int").host_value(); },
      "[test_never] the CPU kernel at", "wrong type");
  EXPECT_EQ(dispatcher().find_or_null("test_never"), nullptr);
}

TEST(Op, RefusesAMalformedSchema) {
  EXPECT_THROW(OpBuilder<Tensor(const Tensor&)>("test_bad(Tensor self"), DispatchError);
}

TEST(Saves, NameArgumentsOrResultsAndWhoNeedsThem) {
  const Schema schema = parse_schema("f(Tensor self, int n, Tensor mat2) -> (Tensor, Tensor)");
  const Save self = parse_save(schema, "self for mat2");
  EXPECT_FALSE(self.is_output);
  EXPECT_EQ(self.index, 0u);
  EXPECT_EQ(self.needed_for, 0b10u) << "tensor arguments are counted, not all";
  const Save result = parse_save(schema, "output1 for self, mat2");
  EXPECT_TRUE(result.is_output);
  EXPECT_EQ(result.index, 1u);
  EXPECT_EQ(result.needed_for, 0b11u);
  EXPECT_EQ(parse_save(schema, "output").index, 0u);
  EXPECT_EQ(parse_save(schema, "mat2").index, 2u);
  EXPECT_EQ(parse_save(schema, "mat2").needed_for, ~uint64_t{0});
  expect_error<DispatchError>([&] { parse_save(schema, "weight"); }, "[f] saves \"weight\"");
  expect_error<DispatchError>([&] { parse_save(schema, "self for n"); }, "no tensor argument n");
  EXPECT_THROW(parse_save(schema, "outputs"), DispatchError);
  EXPECT_THROW(parse_save(schema, "output2"), DispatchError) << "there are two results";
}

TEST(InputMeta, TellsTheLayoutOfRowsAndOfViews) {
  const auto listed = [](const Dims& dims) {
    return std::vector<int64_t>(dims.begin(), dims.end());
  };
  const Tensor rows = empty_tensor({2, 3}, DType::kF32);
  InputMeta meta;
  meta.describe(*rows.impl());
  EXPECT_EQ(listed(meta.strides()), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(meta.offset(), 0);

  const Tensor turned = rows.as_strided({2, 2}, {1, 3}, 1);
  meta.describe(*turned.impl());
  const InputMeta copy(meta);
  meta.describe(*rows.impl());
  EXPECT_EQ(listed(meta.strides()), (std::vector<int64_t>{3, 1})) << "what it told before is gone";
  EXPECT_EQ(listed(copy.strides()), (std::vector<int64_t>{1, 3})) << "a copy is its own";
  EXPECT_EQ(copy.offset(), 1);
  EXPECT_EQ(listed(copy.sizes), (std::vector<int64_t>{2, 2}));

  const Tensor later = rows.as_strided({3}, {1}, 3);
  meta.describe(*later.impl());
  EXPECT_EQ(meta.offset(), 3) << "rows that begin behind the storage's start";
}

TEST(Vjp, GradientsEvaluatesOnlyWhatIsNeeded) {
  const Tensor grad = empty_tensor({1}, DType::kF32);
  const std::array<InputMeta, 3> inputs;
  VjpContext ctx({}, {}, inputs, 0b101, {});
  int calls = 0;
  const auto give = [&] {
    ++calls;
    return grad;
  };
  const Gradients result = ctx.gradients(give, give, give);
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(result[0].defined());
  EXPECT_FALSE(result[1].defined());
  EXPECT_FALSE(ctx.destination(0).defined());
  EXPECT_FALSE(ctx.needs(7));
}

}  // namespace
}  // namespace lockstep
