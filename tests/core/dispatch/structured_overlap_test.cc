#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/view/view.h"
#include "tests/core/dispatch/floats.h"
#include "tests/core/expect_error.h"
#include "tests/core/tensor/places.h"

// How the structured wrapper treats destinations that share memory with other arguments.

namespace lockstep {
namespace {

/// f32 sum of two tensors that broadcast, with any strides.
Outputs sum_rule(const Tensor& self, const Tensor& other) {
  return one(broadcast("test_sum", self.sizes(), other.sizes()), DType::kF32);
}
void sum_kernel(const Out& out, const In& a, const In& b) {
  const auto to = places(out.sizes(), out.strides());
  const auto from_a = places(a.sizes(), a.strides());
  const auto from_b = places(b.sizes(), b.strides());
  for (size_t i = 0; i < to.size(); ++i) {
    out.data<float>()[to[i]] = a.data<float>()[from_a[i]] + b.data<float>()[from_b[i]];
  }
}
LS_OP(test_sum, Tensor(const Tensor&, const Tensor&),
      "test_sum(Tensor self, Tensor other) -> Tensor")
    .structured(&sum_rule)
    .in_place()
    .out();
LS_KERNEL(CPU, "test_sum", sum_kernel, Strides::kAny);

/// The elements of a vector in reverse order. In place, the kernel would read what it has written.
Outputs flip_rule(const Tensor& self) { return one(to_dims(self.sizes()), self.dtype()); }
void flip_kernel(const Out& out, const In& in) {
  for (int64_t i = 0; i < in.numel; ++i) {
    out.data<float>()[i * out.stride(0)] = in.data<float>()[(in.numel - 1 - i) * in.stride(0)];
  }
}
LS_OP(test_flip, Tensor(const Tensor&), "test_flip(Tensor self) -> Tensor")
    .structured(&flip_rule)
    .out();
LS_KERNEL(CPU, "test_flip", flip_kernel, Strides::kAny);

/// Sum of a list of vectors, plus an optional one.
Outputs merge_rule(TensorList list, OptionalTensor) {
  return one(to_dims(list[0].sizes()), DType::kF32);
}
void merge_kernel(const Out& out, InList list, const In& extra) {
  for (int64_t i = 0; i < out.numel; ++i) {
    float sum = extra.defined() ? extra.data<float>()[i] : 0;
    for (const In& in : list) sum += in.data<float>()[i];
    out.data<float>()[i] = sum;
  }
}
LS_OP(test_merge, Tensor(TensorList, OptionalTensor),
      "test_merge(Tensor[] tensors, Tensor? extra) -> Tensor")
    .structured(&merge_rule)
    .out();
LS_KERNEL(CPU, "test_merge", merge_kernel, Strides::kContiguous);
const Tensor& merge_out(const Tensor& out, TensorList list, OptionalTensor extra) {
  using Call = TypedOp<const Tensor&(TensorList, OptionalTensor, const Tensor&)>;
  return Call(&dispatcher().find("test_merge.out"))(list, extra, out);
}

TEST(Overlap, ADestinationThatRepeatsAnElementIsRefused) {
  const Tensor wide = vec({1}).expand({3});
  expect_error<ShapeError>([&] { op_test_sum.in_place(wide, vec({1})); },
                           "the destination's elements overlap", "clone()");
  EXPECT_NO_THROW(op_test_sum.in_place(vec({1}).expand({1}), vec({1})));
  EXPECT_NO_THROW(op_test_sum.in_place(vec({}).expand({3, 0}), vec({1})));
}

TEST(Overlap, ADestinationWithInterleavedRowsIsTaken) {
  const Tensor base = vec({1, 2, 3, 4, 5, 6});
  // The window has offsets 0, 2, 3 and 5: distinct, though its strides alone do not prove it.
  op_test_sum.in_place(base.as_strided({2, 2}, {3, 2}), vec({10, 20, 30, 40}).view({2, 2}));
  EXPECT_EQ(floats(base), (Floats{11, 2, 23, 34, 5, 46}));
}

TEST(Overlap, WindowsThatMeetAreEachComputedFromWhatWasThere) {
  const Tensor base = vec({1, 2, 3, 4});
  const Tensor windows = base.as_strided({3, 2}, {1, 1});
  op_test_sum.in_place(windows, vec({10}).expand({3, 2}));
  EXPECT_EQ(floats(base), (Floats{11, 12, 13, 14})) << "not twice where two windows meet";
}

TEST(Overlap, PartialOverlapIsRefusedInEveryKindOfArgument) {
  const Tensor base = vec({1, 2, 3, 4});
  const Tensor low = base.slice(0, 0, 2);
  const Tensor middle = base.slice(0, 1, 3);
  const auto refuses = [](auto&& call) {
    expect_error<ShapeError>(call, "shares part of its memory");
  };
  refuses([&] { op_test_sum.in_place(low, middle); });
  refuses([&] { op_test_sum.out(low, vec({1}), middle); });
  refuses([&] { merge_out(middle, {vec({1, 2}), low}, {}); });
  refuses([&] { merge_out(middle, {vec({1, 2})}, low); });
  refuses([&] { op_test_sum.in_place(base.view({2, 2}), base.view({2, 2}).t()); });
}

TEST(Overlap, ColumnsSideBySideDoNotOverlap) {
  const Tensor base = vec({1, 2, 3, 4}).view({2, 2});
  op_test_sum.in_place(base.select(1, 0), base.select(1, 1));
  EXPECT_EQ(floats(base), (Floats{3, 2, 7, 4}));
}

/// Offsets in the base of the elements of a window.
std::multiset<int64_t> places_in_base(const Tensor& window) {
  std::multiset<int64_t> all;
  for (int64_t place : places(window.sizes(), window.strides())) {
    all.insert(window.storage_offset() + place);
  }
  return all;
}
/// Whether the offsets are distinct and contiguous.
bool has_no_gaps(const std::multiset<int64_t>& places) {
  const std::set<int64_t> distinct(places.begin(), places.end());
  const auto range = static_cast<size_t>(*distinct.rbegin() - *distinct.begin()) + 1;
  return places.size() == range && distinct.size() == range;
}

RC_GTEST_PROP(Overlap, IsRefusedExactlyBetweenRangesThatShareAPart, ()) {
  const Tensor base = empty_tensor({64}, DType::kF32);
  std::iota(base.data<float>(), base.data<float>() + 64, 0.0f);
  const int64_t rows = *rc::gen::inRange<int64_t>(1, 4);
  const int64_t columns = *rc::gen::inRange<int64_t>(1, 4);
  const auto window = [&] {
    return base.as_strided({rows, columns},
                           {*rc::gen::inRange<int64_t>(1, 11), *rc::gen::inRange<int64_t>(1, 11)},
                           *rc::gen::inRange<int64_t>(0, 20));
  };
  const Tensor a = window();
  const Tensor b = window();
  const std::multiset<int64_t> of_a = places_in_base(a), of_b = places_in_base(b);
  RC_PRE(std::set<int64_t>(of_a.begin(), of_a.end()).size() == of_a.size());
  const bool shared =
      std::any_of(of_a.begin(), of_a.end(), [&](int64_t place) { return of_b.contains(place); });
  const bool identical = a.storage_offset() == b.storage_offset() && same(a.strides(), b.strides());
  Floats expected = floats(a);
  const Floats added = floats(b);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += added[i];
  if (shared && !identical && has_no_gaps(of_a) && has_no_gaps(of_b)) {
    RC_ASSERT_THROWS_AS(op_test_sum.in_place(a, b), ShapeError);
  } else {
    RC_ASSERT(floats(op_test_sum.in_place(a, b)) == expected);
  }
}

TEST(Overlap, AnInputBetweenTheDestinationsElementsIsReadFirst) {
  const Tensor base = vec({1, 2, 3, 4, 5});
  const Tensor even = base.slice(0, 0, 5, 2);
  // Offsets 0, 2, 4 and 2, 3, 4: two are shared.
  op_test_sum.out(base.slice(0, 2, 5), vec({10, 20, 30}), even);
  EXPECT_EQ(floats(base), (Floats{13, 2, 24, 4, 35}));
}

TEST(Overlap, AnInputThatIsTheDestinationGivesTheSameResultAsACopy) {
  const Tensor x = vec({1, 2, 3});
  op_test_sum.in_place(x, x);
  EXPECT_EQ(floats(x), (Floats{2, 4, 6}));
  op_test_flip.out(x, x);
  EXPECT_EQ(floats(x), (Floats{6, 4, 2}))
      << "this kernel reads what it wrote: it needs a temporary";
}

TEST(Overlap, OutThatIsAnInputIsNotResized) {
  const Tensor x = vec({1});
  expect_error<ShapeError>([&] { op_test_sum.out(x, vec({1, 2}), x); }, "also an input");
  EXPECT_EQ(floats(x), (Floats{1}));
}

}  // namespace
}  // namespace lockstep
