#include "core/ops/conv/conv.h"

#include <array>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "core/tensor/memory_format.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

/// Sizes and settings of one convolution with up to three spatial dimensions.
struct Case {
  const char* what;
  Dims image;   // [batch, channels, spatial...]
  Dims weight;  // [features, channels / groups, kernel...]
  Dims stride{1};
  Dims padding{0};
  Dims dilation{1};
  int64_t groups = 1;
  Dims output_padding{0};  // for transposed convolutions
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.what; }

// Each has more than a million operations, too many for the kernel to compute in f64.
const Case kLargeCases[] = {
    {.what = "3x3", .image = {9, 20, 17, 13}, .weight = {24, 20, 3, 3}, .padding = {1}},
    {.what = "3x3 of many channels on an odd image",
     .image = {5, 48, 13, 10},
     .weight = {80, 48, 3, 3},
     .padding = {1}},
    {.what = "3x3 of many channels with unequal padding",
     .image = {9, 32, 8, 21},
     .weight = {32, 32, 3, 3},
     .padding = {2, 0}},
    {.what = "3x3 of many channels on small images",
     .image = {37, 96, 4, 4},
     .weight = {112, 96, 3, 3},
     .padding = {1}},
    {.what = "from three channels",
     .image = {8, 3, 32, 32},
     .weight = {16, 3, 3, 3},
     .padding = {1}},
    {.what = "1x1 stride 2", .image = {16, 32, 14, 14}, .weight = {64, 32, 1, 1}, .stride = {2}},
    {.what = "3x3 stride 2 on an even image",
     .image = {7, 32, 16, 16},
     .weight = {32, 32, 3, 3},
     .stride = {2},
     .padding = {1}},
    {.what = "asymmetric",
     .image = {5, 12, 19, 23},
     .weight = {18, 12, 5, 2},
     .stride = {3, 2},
     .padding = {2, 1},
     .dilation = {1, 3}},
    {.what = "groups",
     .image = {6, 24, 15, 15},
     .weight = {36, 8, 3, 3},
     .stride = {2, 1},
     .padding = {1},
     .groups = 3},
    {.what = "depthwise",
     .image = {16, 48, 14, 14},
     .weight = {48, 1, 3, 3},
     .padding = {1},
     .groups = 48},
    {.what = "one dimension",
     .image = {8, 16, 200},
     .weight = {24, 16, 7},
     .stride = {2},
     .padding = {3}},
    {.what = "three dimensions",
     .image = {3, 6, 9, 10, 11},
     .weight = {10, 6, 3, 2, 3},
     .stride = {1, 2, 1},
     .padding = {1, 0, 2}},
    {.what = "output padding beyond the stride",
     .image = {4, 16, 12, 12},
     .weight = {16, 16, 4, 5},
     .stride = {3, 2},
     .padding = {1, 2},
     .dilation = {4, 4},
     .output_padding = {2, 3}},
};

int64_t number_of(const Dims& list, size_t i) { return list.size() == 1 ? list[0] : list[i]; }

/// Reference in f64, by the definition: image [n, c, d, h, w], weight [f, c / g, ...] -> map.
struct Naive {
  std::array<int64_t, 3> image{1, 1, 1}, kernel{1, 1, 1}, map{1, 1, 1};
  std::array<int64_t, 3> stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  int64_t batch, channels, features, groups;

  Naive(const Case& c, IntList image_sizes, IntList map_sizes)
      : batch(image_sizes[0]), channels(image_sizes[1]), features(map_sizes[1]), groups(c.groups) {
    const size_t spatial = image_sizes.size() - 2;
    for (size_t i = 0; i < spatial; ++i) {
      const size_t at = 3 - spatial + i;
      image[at] = image_sizes[i + 2], kernel[at] = c.weight[i + 2], map[at] = map_sizes[i + 2];
      stride[at] = number_of(c.stride, i), padding[at] = number_of(c.padding, i);
      dilation[at] = number_of(c.dilation, i);
    }
  }

  /// Calls visit(image index, weight index, map index) for every product of the sum.
  template <class Visit>
  void for_each_product(Visit visit) const {
    const int64_t deep = channels / groups;
    const auto size = [](const std::array<int64_t, 3>& s) { return s[0] * s[1] * s[2]; };
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t f = 0; f < features; ++f) {
        for (int64_t c = 0; c < deep; ++c) {
          const int64_t channel = f / (features / groups) * deep + c;
          for (int64_t o = 0; o < size(map); ++o) {
            const std::array<int64_t, 3> at{o / (map[1] * map[2]), o / map[2] % map[1], o % map[2]};
            for (int64_t k = 0; k < size(kernel); ++k) {
              const std::array<int64_t, 3> tap{k / (kernel[1] * kernel[2]),
                                               k / kernel[2] % kernel[1], k % kernel[2]};
              int64_t place = 0;
              bool in = true;
              for (size_t i = 0; i < 3; ++i) {
                const int64_t x = at[i] * stride[i] + tap[i] * dilation[i] - padding[i];
                in = in && x >= 0 && x < image[i];
                place = place * image[i] + x;
              }
              if (!in) continue;
              visit((n * channels + channel) * size(image) + place,
                    (f * deep + c) * size(kernel) + k, (n * features + f) * size(map) + o);
            }
          }
        }
      }
    }
  }
};

Tensor f64_zeros(IntList sizes) { return zeros(sizes, DType::kF64); }

/// Gradient of the bias: sums over all dimensions but 1.
Tensor feature_sums(const Tensor& grad) {
  Dims dims{0};
  for (int64_t i = 2; i < grad.dim(); ++i) dims.push_back(i);
  return sum(grad, dims);
}

/// Normally distributed numbers that every floating dtype represents exactly.
Tensor exact_tensor(IntList sizes, uint64_t seed) {
  return random_tensor(sizes, DType::kBF16, seed).to(DType::kF64);
}

/// Arguments of a case, plain or transposed, and the results of the reference.
struct Expected {
  Tensor input, weight, bias, cotangent;
  Tensor out, of_input, of_weight;

  Expected(const Case& c, bool transposed) {
    // A transposed convolution's input channels are the weight's features.
    Dims input_sizes = c.image;
    if (transposed) input_sizes[1] = c.weight[0];
    const int64_t outputs = transposed ? c.weight[1] * c.groups : c.weight[0];
    input = exact_tensor(input_sizes, 1);
    weight = exact_tensor(c.weight, 2);
    bias = exact_tensor({outputs}, 3);
    const Tensor shape =
        convolution(empty(input_sizes, kMeta), empty(c.weight, kMeta), {}, c.stride, c.padding,
                    c.dilation, transposed, c.output_padding, c.groups);
    cotangent = exact_tensor(shape.sizes(), 4);
    out = f64_zeros(shape.sizes());
    of_input = f64_zeros(input_sizes);
    of_weight = f64_zeros(c.weight);
    const Naive naive(c, (transposed ? out : input).sizes(), (transposed ? input : out).sizes());
    const double* xs = input.data<double>();
    const double* ws = weight.data<double>();
    const double* gs = cotangent.data<double>();
    double *outs = out.data<double>(), *dx = of_input.data<double>(),
           *dw = of_weight.data<double>();
    naive.for_each_product([&](int64_t image, int64_t k, int64_t map) {
      const int64_t in = transposed ? map : image, o = transposed ? image : map;
      outs[o] += xs[in] * ws[k];
      dx[in] += gs[o] * ws[k];
      dw[k] += gs[o] * xs[in];
    });
    Dims along(static_cast<size_t>(out.dim()), 1);
    along[1] = outputs;
    out = out + bias.view(along);
  }
};

class ConvolutionCase : public testing::TestWithParam<Case> {};

TEST_P(ConvolutionCase, AgreesWithTheDefinition) {
  const Case& c = GetParam();
  for (const bool transposed : {false, true}) {
    if (!transposed && c.output_padding[0] != 0) continue;
    const Expected expected(c, transposed);
    const std::pair<DType, double> tolerances[] = {
        {DType::kF32, 1e-4}, {DType::kF64, 1e-11}, {DType::kBF16, 0x1p-8}, {DType::kF16, 0x1p-10}};
    for (const auto& [dtype, tolerance] : tolerances) {
      SCOPED_TRACE(testing::Message() << (transposed ? "transposed " : "") << to_string(dtype));
      const Tensor x = expected.input.to(dtype).clone().set_requires_grad();
      const Tensor w = expected.weight.to(dtype).clone().set_requires_grad();
      const Tensor b = expected.bias.to(dtype).clone().set_requires_grad();
      const Tensor out = convolution(x, w, b, c.stride, c.padding, c.dilation, transposed,
                                     c.output_padding, c.groups);
      EXPECT_EQ(out.dtype(), dtype);
      expect_near(out, expected.out, tolerance, tolerance);
      const std::vector<Tensor> grads = grad({out}, {x, w, b}, {expected.cotangent.to(dtype)});
      // These sum over more terms, so errors are larger.
      expect_near(grads[0], expected.of_input, tolerance, tolerance);
      expect_near(grads[1], expected.of_weight, 20 * tolerance, tolerance);
      expect_near(grads[2], feature_sums(expected.cotangent), 20 * tolerance, tolerance);
    }
  }
}

TEST_P(ConvolutionCase, BitsDoNotDependOnThreads) {
  const Case& c = GetParam();
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
    for (const bool transposed : {false, true}) {
      if (!transposed && c.output_padding[0] != 0) continue;
      Dims input_sizes = c.image;
      if (transposed) input_sizes[1] = c.weight[0];
      const Tensor x = random_tensor(input_sizes, dtype, 1), w = random_tensor(c.weight, dtype, 2);
      expect_same_bits_for_any_threads([&] {
        const Tensor out = convolution(x, w, {}, c.stride, c.padding, c.dilation, transposed,
                                       c.output_padding, c.groups);
        const auto [dx, dw, db] =
            convolution_backward(out, x, w, std::nullopt, c.stride, c.padding, c.dilation,
                                 transposed, c.output_padding, c.groups, {true, true, true});
        return std::vector<Tensor>{out, dx, dw, db};
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Large, ConvolutionCase, testing::ValuesIn(kLargeCases));

TEST(Convolution, AnImageHasTheSameBitsInAnyBatch) {
  const Tensor x = random_tensor({33, 64, 12, 9}, DType::kF32, 1);
  const Tensor w = random_tensor({32, 64, 3, 3}, DType::kF32, 2);
  const Tensor whole = conv2d(x, w, {}, {1}, {1});
  for (const int64_t first : {0, 7, 32}) {
    const int64_t count = std::min<int64_t>(5, 33 - first);
    EXPECT_EQ(values(conv2d(x.narrow(0, first, count), w, {}, {1}, {1})),
              values(whole.narrow(0, first, count)));
  }
}

TEST(Convolution, APixelThatIsNotFiniteSpoilsOnlyWhatItsTilesCompute) {
  Tensor x = random_tensor({2, 32, 16, 16}, DType::kF32, 1);
  const Tensor w = random_tensor({32, 32, 3, 3}, DType::kF32, 2);
  const Tensor before = conv2d(x, w, {}, {1}, {1});
  x.select(0, 0).select(0, 3).select(0, 8).narrow(0, 8, 1).fill_(
      std::numeric_limits<double>::quiet_NaN());
  const Tensor out = conv2d(x, w, {}, {1}, {1});
  EXPECT_TRUE(all(isnan(out.select(0, 0).narrow(1, 7, 3).narrow(2, 7, 3))).item<bool>());
  EXPECT_EQ(values(out.select(0, 1)), values(before.select(0, 1)));
  EXPECT_EQ(values(out.select(0, 0).narrow(1, 0, 6)), values(before.select(0, 0).narrow(1, 0, 6)));
  EXPECT_EQ(values(out.select(0, 0).narrow(1, 10, 6)),
            values(before.select(0, 0).narrow(1, 10, 6)));
}

TEST(Convolution, IntegersWrapAround) {
  const Tensor x = full({1, 1, 2, 2}, 100, DType::kI8);
  const Tensor w = ones({1, 1, 2, 2}, DType::kI8);
  EXPECT_EQ(values(conv2d(x, w)), (std::vector<double>{400 - 512}));
  const Tensor spread = conv_transpose2d(x, w);
  EXPECT_EQ(values(spread), (std::vector<double>{100, -56, 100, -56, -112, -56, 100, -56, 100}));
}

TEST(Convolution, SmallProblemsAreSummedInF64) {
  // Exact only with a wider accumulator: 1e8 + 1 - 1e8 is 0 in f32.
  const Tensor x = tensor_from<float>({1e8F, 1.0F, -1e8F}, {1, 3, 1});
  EXPECT_EQ(values(conv1d(x, ones({1, 3, 1}))), std::vector<double>{1});
}

TEST(Convolution, TheBatchMayBeMissingOrEmpty) {
  const Tensor x = random_tensor({2, 3, 5, 5}), w = random_tensor({4, 3, 3, 3}, DType::kF32, 2);
  const Tensor both = conv2d(x, w, {}, {1}, {1});
  EXPECT_EQ(values(conv2d(x.select(0, 1), w, {}, {1}, {1})), values(both.select(0, 1)));
  const Tensor none = zeros({0, 3, 5, 5}).set_requires_grad();
  const Tensor kernel = w.clone().set_requires_grad();
  const Tensor out = conv2d(none, kernel);
  EXPECT_EQ(out.shape(), "[0, 4, 3, 3]");
  const std::vector<Tensor> grads = grad({out}, {none, kernel}, {zeros({0, 4, 3, 3})});
  EXPECT_EQ(grads[0].shape(), "[0, 3, 5, 5]");
  EXPECT_EQ(values(grads[1]), std::vector<double>(108, 0.0));
}

bool is_channels_last(const Tensor& tensor) {
  return same(tensor.strides(), channels_last_strides(tensor.sizes()));
}

TEST(Convolution, StridedArgumentsGiveTheSameBits) {
  const Tensor x = random_tensor({8, 16, 16, 24}), w = random_tensor({3, 3, 24, 32});
  const Tensor turned_x = x.permute({0, 3, 1, 2}), turned_w = w.permute({3, 2, 0, 1});
  const Tensor want = conv2d(turned_x.contiguous(), turned_w.contiguous(), {}, {1}, {1});
  const Tensor got = conv2d(turned_x, turned_w, {}, {1}, {1});
  EXPECT_TRUE(is_channels_last(got));
  EXPECT_TRUE(equal(got, want));
}

TEST(Convolution, ResultsHaveTheirChannelsInnermostWhereInputOrWeightHas) {
  const auto last = [](const Tensor& tensor) { return clone(tensor, MemoryFormat::kChannelsLast); };
  const Tensor image = random_tensor({2, 6, 7, 5}), weight = random_tensor({4, 3, 3, 3});
  const Tensor grad = random_tensor({2, 4, 7, 5});
  const auto forward = [](const Tensor& x, const Tensor& w) {
    return convolution(x, w, {}, {1}, {1}, {1}, false, {0}, 2);
  };
  const auto backward = [&](const Tensor& x, const Tensor& w) {
    return convolution_backward(grad, x, w, std::nullopt, {1}, {1}, {1}, false, {0}, 2,
                                {true, true, true});
  };
  const Tensor expected = forward(image, weight);
  const auto [dx, dw, db] = backward(image, weight);
  EXPECT_TRUE(expected.is_contiguous() && dx.is_contiguous() && dw.is_contiguous());
  for (const auto& [x, w] :
       {std::pair(last(image), weight), {image, last(weight)}, {last(image), last(weight)}}) {
    const Tensor got = forward(x, w);
    EXPECT_TRUE(is_channels_last(got));
    expect_near(got, expected, 0, 0);
    const auto [got_dx, got_dw, got_db] = backward(x, w);
    EXPECT_TRUE(is_channels_last(got_dx) && is_channels_last(got_dw));
    expect_near(got_dx, dx, 0, 0);
    expect_near(got_dw, dw, 0, 0);
    expect_near(got_db, db, 0, 0);
  }
}

TEST(Convolution, WhatIsRowMajorTooIsNoSignOfChannelsInnermost) {
  EXPECT_TRUE(suggests_channels_last(Dims{2, 3, 4, 5}, Dims{60, 1, 15, 3}));
  EXPECT_TRUE(suggests_channels_last(Dims{2, 3, 4, 5, 6}, Dims{360, 1, 90, 18, 3}));
  EXPECT_TRUE(suggests_channels_last(Dims{2, 3, 4, 5}, Dims{120, 1, 30, 6})) << "with gaps";
  EXPECT_FALSE(suggests_channels_last(Dims{2, 3, 4, 5}, Dims{60, 20, 5, 1}));
  EXPECT_FALSE(suggests_channels_last(Dims{2, 1, 4, 5}, Dims{20, 20, 5, 1}));
  EXPECT_FALSE(suggests_channels_last(Dims{2, 3, 1, 1}, Dims{3, 1, 1, 1}));
  EXPECT_FALSE(suggests_channels_last(Dims{2, 3, 4}, Dims{12, 1, 3}));
}

TEST(Convolution, OutputMaskLeavesResultsOut) {
  const Tensor x = random_tensor({2, 3, 5, 5}), w = random_tensor({4, 3, 3, 3});
  const Tensor g = random_tensor({2, 4, 3, 3});
  const auto [dx, dw, db] = convolution_backward(g, x, w, std::nullopt, {1}, {0}, {1}, false, {0},
                                                 1, {false, true, false});
  EXPECT_FALSE(dx.defined());
  EXPECT_TRUE(dw.defined());
  EXPECT_FALSE(db.defined());
}

TEST(Convolution, MistakesAreNamed) {
  const Tensor x = zeros({2, 3, 5, 5}), w = zeros({4, 3, 3, 3});
  expect_error<ShapeError>(
      [&] {
        conv2d(zeros({2, 4, 5, 5}), w);
      },
      "[convolution]", "3 channels", "[2, 4, 5, 5]");
  expect_error<ShapeError>(
      [&] {
        conv2d(x, zeros({4, 3, 7, 7}));
      },
      "[convolution]", "nothing is left of spatial dimension 0");
  expect_error<ShapeError>([&] { conv2d(x, zeros({0, 3, 3, 3})); }, "one output channel");
  EXPECT_EQ(conv2d(zeros({1, 0, 5, 5}), zeros({4, 0, 3, 3})).shape(), "[1, 4, 3, 3]");
  expect_error<ShapeError>([&] { conv2d(x, w, zeros({3})); }, "[convolution]", "bias", "[4]",
                           "[3]");
  expect_error<ShapeError>([&] { conv2d(x, w, {}, {0}); }, "stride", "at least 1");
  expect_error<ShapeError>([&] { conv2d(x, w, {}, {1, 1, 1}); }, "stride", "2 spatial dimensions");
  expect_error<ShapeError>(
      [&] {
        conv2d(x, zeros({4, 1, 3, 3}), {}, {1}, {0}, {1}, 3);
      },
      "groups that divides");
  expect_error<ShapeError>([&] { conv2d(zeros({5, 5}), w); }, "[conv2d]", "[5, 5]");
  expect_error<ShapeError>(
      [&] {
        conv_transpose2d(x, zeros({3, 4, 3, 3}), {}, {2}, {0}, {2});
      },
      "output_padding");
  expect_error<DTypeError>([&] { conv2d(x, w.to(DType::kF64)); }, "weight", "float32", "float64");
  expect_error<DTypeError>([&] { conv2d(x.to(DType::kBool), w.to(DType::kBool)); }, "bool");
}

}  // namespace
}  // namespace lockstep
