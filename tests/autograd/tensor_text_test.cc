#include "autograd/tensor_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "autograd/tensor_formatter.h"
#include "autograd/vmap.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/literal.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"

namespace lockstep {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The texts are those of PyTorch's print, but for the names of dtypes and nodes.

TEST(TensorText, IntegersAndBoolsArePaddedToOneWidth) {
  EXPECT_EQ(format_tensor(tensor({{0, 1, 2}, {3, 4, -50}})),
            "tensor([[  0,   1,   2],\n"
            "        [  3,   4, -50]])");
  EXPECT_EQ(format_tensor(tensor({true, false})), "tensor([ True, False])");
}

TEST(TensorText, WholeNumbersEndInAPoint) {
  EXPECT_EQ(format_tensor(tensor({1.0, 2.0, 30.0})), "tensor([ 1.,  2., 30.])");
}

TEST(TensorText, FractionsHaveOnePrecisionForTheWholeTensor) {
  EXPECT_EQ(format_tensor(tensor({{1.5, 2.0}, {-0.25, 100.0}})),
            "tensor([[  1.5000,   2.0000],\n"
            "        [ -0.2500, 100.0000]])");
  EXPECT_EQ(format_tensor(tensor({1.5, 2.0}), {.precision = 1}), "tensor([1.5, 2.0])");
}

TEST(TensorText, WideRangesAreScientific) {
  EXPECT_EQ(format_tensor(tensor({1e-5, 1.0})), "tensor([1.0000e-05, 1.0000e+00])");
  EXPECT_EQ(format_tensor(tensor({1.0, 1001.0})), "tensor([1.0000e+00, 1.0010e+03])");
  EXPECT_EQ(format_tensor(tensor({1.0, 1000.0})), "tensor([   1., 1000.])");
  EXPECT_EQ(format_tensor(tensor({2e8, 3e8})), "tensor([2.0000e+08, 3.0000e+08])");
  EXPECT_EQ(format_tensor(tensor({1e-5, 1.0}), {.scientific = false}), "tensor([0.0000, 1.0000])");
  EXPECT_EQ(format_tensor(tensor({1.5}), {.scientific = true}), "tensor([1.5000e+00])");
}

TEST(TensorText, ZerosInfinitiesAndNansHaveNoSayInTheNotation) {
  EXPECT_EQ(format_tensor(tensor({kNan, kInf, 1.0})), "tensor([nan, inf, 1.])");
  EXPECT_EQ(format_tensor(tensor({kNan, -kInf, 1.5})), "tensor([   nan,   -inf, 1.5000])");
  EXPECT_EQ(format_tensor(tensor({0.0, 0.5})), "tensor([0.0000, 0.5000])");
  EXPECT_EQ(format_tensor(tensor({0.0})), "tensor([0.])");
}

TEST(TensorText, LinesEndWithinTheWidth) {
  EXPECT_EQ(format_tensor(arange(30)),
            "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
            "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])");
}

TEST(TensorText, LargeTensorsAreSummarised) {
  EXPECT_EQ(format_tensor(arange(2000)), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])");
  EXPECT_EQ(format_tensor(arange(1000), {.threshold = 999, .edge_items = 1}),
            "tensor([  0,  ..., 999])");
  EXPECT_EQ(format_tensor(view(arange(7 * 200), {7, 200})),
            "tensor([[   0,    1,    2,  ...,  197,  198,  199],\n"
            "        [ 200,  201,  202,  ...,  397,  398,  399],\n"
            "        [ 400,  401,  402,  ...,  597,  598,  599],\n"
            "        ...,\n"
            "        [ 800,  801,  802,  ...,  997,  998,  999],\n"
            "        [1000, 1001, 1002,  ..., 1197, 1198, 1199],\n"
            "        [1200, 1201, 1202,  ..., 1397, 1398, 1399]])");
  // Six of a dimension are no more than its two edges.
  EXPECT_EQ(format_tensor(view(arange(6 * 200), {6, 200})).find("        ...,"), std::string::npos);
}

TEST(TensorText, ASummaryOfAWideRangeLooksAtWhatItShows) {
  const Tensor x = ones({2000});
  x[1000] = 1e6;
  EXPECT_EQ(format_tensor(x), "tensor([1., 1., 1.,  ..., 1., 1., 1.])");
}

TEST(TensorText, BlocksOfThreeDimensionsAreApart) {
  EXPECT_EQ(format_tensor(view(arange(8), {2, 2, 2})),
            "tensor([[[0, 1],\n"
            "         [2, 3]],\n"
            "\n"
            "        [[4, 5],\n"
            "         [6, 7]]])");
}

TEST(TensorText, ViewsPrintTheElementsTheyHave) {
  EXPECT_EQ(format_tensor(tensor({{1, 2}, {3, 4}}).t()),
            "tensor([[1, 3],\n"
            "        [2, 4]])");
  EXPECT_EQ(format_tensor(tensor(3)), "tensor(3)");
  EXPECT_EQ(format_tensor(tensor(2.5)), "tensor(2.5000)");
}

TEST(TensorText, WhatIsNotTheDefaultIsTold) {
  EXPECT_EQ(format_tensor(tensor({1}, DType::kI32)), "tensor([1], dtype=int32)");
  EXPECT_EQ(format_tensor(tensor({1.5}, DType::kBF16)), "tensor([1.5000], dtype=bfloat16)");
  EXPECT_EQ(format_tensor(zeros({0})), "tensor([])");
  EXPECT_EQ(format_tensor(zeros({2, 0})), "tensor([], size=(2, 0))");
  EXPECT_EQ(format_tensor(zeros({0}, DType::kI64)), "tensor([], dtype=int64)");
  EXPECT_EQ(format_tensor(zeros({2, 3}, Device{DeviceType::kMeta})),
            "tensor(..., device='meta', size=(2, 3))");
  EXPECT_EQ(format_tensor(Tensor()), "tensor(undefined)");
}

TEST(TensorText, TheNotationChangesBeyondItsBorders) {
  EXPECT_EQ(format_tensor(tensor({1e8})), "tensor([100000000.])");
  EXPECT_EQ(format_tensor(tensor({1.00000008e8})), "tensor([1.0000e+08])");
  EXPECT_EQ(format_tensor(tensor({1e-4}, DType::kF64)), "tensor([0.0001], dtype=float64)");
  EXPECT_EQ(format_tensor(tensor({9.9e-5}, DType::kF64)), "tensor([9.9000e-05], dtype=float64)");
  EXPECT_EQ(format_tensor(tensor({-1e-5, -2.0})), "tensor([-1.0000e-05, -2.0000e+00])");
  EXPECT_EQ(format_tensor(tensor({0.5, 500.0})), "tensor([  0.5000, 500.0000])");
  EXPECT_EQ(format_tensor(tensor({0.5, 501.0})), "tensor([5.0000e-01, 5.0100e+02])");
  EXPECT_EQ(format_tensor(tensor({-1.0, 1.0})), "tensor([-1.,  1.])");
}

TEST(TensorText, EachCutDimensionHasItsDots) {
  EXPECT_EQ(format_tensor(view(arange(5 * 5), {5, 5}), {.threshold = 24, .edge_items = 2}),
            "tensor([[ 0,  1,  ...,  3,  4],\n"
            "        [ 5,  6,  ...,  8,  9],\n"
            "        ...,\n"
            "        [15, 16,  ..., 18, 19],\n"
            "        [20, 21,  ..., 23, 24]])");
  EXPECT_EQ(format_tensor(view(arange(5 * 4), {5, 4}), {.threshold = 19, .edge_items = 2}),
            "tensor([[ 0,  1,  2,  3],\n"
            "        [ 4,  5,  6,  7],\n"
            "        ...,\n"
            "        [12, 13, 14, 15],\n"
            "        [16, 17, 18, 19]])");
  EXPECT_EQ(format_tensor(view(arange(5 * 2 * 2), {5, 2, 2}), {.threshold = 19, .edge_items = 1}),
            "tensor([[[ 0,  1],\n"
            "         [ 2,  3]],\n"
            "\n"
            "        ...,\n"
            "\n"
            "        [[16, 17],\n"
            "         [18, 19]]])");
  EXPECT_EQ(format_tensor(arange(1000)).find("..."), std::string::npos)
      << "as many as the threshold";
}

TEST(TensorText, RowsAreBrokenInsideTheirBrackets) {
  EXPECT_EQ(format_tensor(view(arange(16), {2, 8}), {.line_width = 24}),
            "tensor([[ 0,  1,  2,  3,\n"
            "          4,  5,  6,  7],\n"
            "        [ 8,  9, 10, 11,\n"
            "         12, 13, 14, 15]])");
  EXPECT_EQ(format_tensor(arange(3), {.line_width = 5}),
            "tensor([0,\n"
            "        1,\n"
            "        2])");
}

TEST(TensorText, RemarksFillALineUpToItsWidth) {
  const Tensor x = tensor({1}, DType::kI32);
  EXPECT_EQ(format_tensor(x, {.line_width = 25}), "tensor([1], dtype=int32)");
  EXPECT_EQ(format_tensor(x, {.line_width = 24}),
            "tensor([1],\n"
            "       dtype=int32)");
  const Tensor rows = tensor({{1, 2}, {3, 4}}, DType::kI32);
  EXPECT_EQ(format_tensor(rows, {.line_width = 30}),
            "tensor([[1, 2],\n"
            "        [3, 4]], dtype=int32)")
      << "the last line alone counts";
  EXPECT_EQ(format_tensor(rows, {.line_width = 29}),
            "tensor([[1, 2],\n"
            "        [3, 4]],\n"
            "       dtype=int32)");
  const Tensor y = tensor({1.0}, DType::kF64).set_requires_grad();
  EXPECT_EQ(format_tensor(y, {.line_width = 30}),
            "tensor([1.], dtype=float64,\n"
            "       requires_grad=True)");
  EXPECT_EQ(format_tensor(y, {.line_width = 50}),
            "tensor([1.], dtype=float64, requires_grad=True)");
  EXPECT_EQ(format_tensor(zeros({2, 0}, DType::kBool)), "tensor([], size=(2, 0), dtype=bool)");
  EXPECT_EQ(format_tensor(zeros({3}, Device{DeviceType::kMeta})),
            "tensor(..., device='meta', size=(3,))");
  const Tensor three = zeros({3}, {DType::kI64, kMeta});
  EXPECT_EQ(format_tensor(three), "tensor(..., device='meta', size=(3,), dtype=int64)");
  EXPECT_EQ(format_tensor(three, {.line_width = 51}),
            "tensor(..., device='meta', size=(3,), dtype=int64)");
  EXPECT_EQ(format_tensor(three, {.line_width = 50}),
            "tensor(..., device='meta', size=(3,),\n"
            "       dtype=int64)");
}

TEST(TensorText, ATensorOfADeviceIsCopiedToBeShown) {
  EXPECT_EQ(format_tensor(tensor({1, 2}).to(Device{DeviceType::kHost, 0})),
            "tensor([1, 2], device='host:0')");
}

TEST(TensorText, AutogradsStateIsTold) {
  const Tensor x = tensor({1.0, 2.0});
  x.set_requires_grad();
  EXPECT_EQ(format_tensor(x), "tensor([1., 2.], requires_grad=True)");
  EXPECT_EQ(format_tensor(x * x), "tensor([1., 4.], grad_fn=<MulBackward0>)");
}

TEST(TensorText, RemarksThatDoNotFitStartALine) {
  const Tensor x = ones({19});
  x.set_requires_grad();
  EXPECT_EQ(format_tensor(x),
            "tensor([1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.,\n"
            "        1.], requires_grad=True)");
  const Tensor y = ones({15});
  y.set_requires_grad();
  EXPECT_EQ(format_tensor(y),
            "tensor([1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
            "       requires_grad=True)");
}

TEST(TensorText, ATensorInsideVmapShowsItsSize) {
  std::string text;
  vmap(
      [&](TensorList x) {
        text = format_tensor(x[0]);
        return std::vector<Tensor>{x[0] * 2};
      },
      {ones({3, 4})});
  EXPECT_EQ(text, "tensor(..., size=(4,))");
}

TEST(TensorText, StreamsAndFmtWriteTheSame) {
  const Tensor x = tensor({1, 2});
  std::ostringstream out;
  out << x;
  EXPECT_EQ(out.str(), "tensor([1, 2])");
  EXPECT_EQ(fmt::format("{} and {:>16}", x, x), "tensor([1, 2]) and   tensor([1, 2])");
}

TEST(TensorText, SizesTypesAndDevicesAreWrittenAsErrorsWriteThem) {
  const Tensor x = zeros({2, 3}, DType::kBF16);
  std::ostringstream out;
  out << x.sizes() << ' ' << x.strides() << ' ' << x.dtype() << ' ' << x.device();
  EXPECT_EQ(out.str(), "[2, 3] [3, 1] bfloat16 cpu");
}

}  // namespace
}  // namespace lockstep
