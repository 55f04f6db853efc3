#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

/// A call of `convolution`.
Sample convolution(std::string what, Tensor input, Tensor weight, Value bias, Dims stride,
                   Dims padding, Dims dilation, bool transposed = false, Dims output_padding = {0},
                   int64_t groups = 1) {
  return call(std::move(what), std::move(input), std::move(weight), std::move(bias),
              std::move(stride), std::move(padding), std::move(dilation), transposed,
              std::move(output_padding), groups);
}

Sample convolution_backward(std::string what, Tensor grad, Tensor input, Tensor weight, Dims stride,
                            Dims padding, Dims dilation, bool transposed, Dims output_padding,
                            int64_t groups, BoolList mask) {
  return call(std::move(what), std::move(grad), std::move(input), std::move(weight), kNone,
              std::move(stride), std::move(padding), std::move(dilation), transposed,
              std::move(output_padding), groups, mask);
}

Value bias(int64_t features) { return floats({features}, 3); }

}  // namespace

void add_conv_samples(SampleTable& table) {
  table["convolution"] = {
      .calls = {convolution("3x3", floats({1, 2, 4, 5}), floats({3, 2, 3, 3}, 2), bias(3), {1, 1},
                            {1, 1}, {1, 1}),
                convolution("1x1", floats({2, 3, 3, 3}), floats({2, 3, 1, 1}, 2), kNone, {2}, {0},
                            {1}),
                convolution("one dimension", floats({2, 2, 8}), floats({2, 2, 3}, 2), bias(2), {2},
                            {1}, {2}),
                convolution("three dimensions", floats({1, 1, 3, 4, 3}), floats({2, 1, 2, 2, 2}, 2),
                            kNone, {1, 2, 1}, {0, 1, 0}, {1}),
                convolution("groups", floats({1, 4, 3, 3}), floats({4, 2, 2, 2}, 2), bias(4), {1},
                            {1}, {1}, false, {0}, 2),
                convolution("depthwise", floats({1, 3, 4, 4}), floats({3, 1, 3, 2}, 2), kNone,
                            {2, 1}, {1, 0}, {1, 2}, false, {0}, 3),
                convolution("transposed", floats({1, 2, 3, 3}), floats({2, 3, 3, 2}, 2), bias(3),
                            {2, 1}, {1, 0}, {1}, true, {1, 0}),
                convolution("transposed groups", floats({2, 2, 4}), floats({2, 2, 3}, 2), bias(4),
                            {3}, {1}, {2}, true, {2}, 2),
                convolution("output padding beyond the stride", floats({1, 1, 3, 2}),
                            floats({1, 1, 2, 2}, 2), kNone, {2, 1}, {0}, {3}, true, {2, 2}),
                convolution("no batch", floats({0, 2, 4, 4}), floats({3, 2, 3, 3}, 2), bias(3), {1},
                            {0}, {1}),
                convolution("no channels", floats({1, 0, 3, 3}), floats({2, 0, 2, 2}, 2), bias(2),
                            {1}, {0}, {1}),
                convolution("integers", integers({1, 2, 3, 3}, -4, 5),
                            integers({2, 2, 2, 2}, -4, 5, 2), integers({2}, -4, 5, 3), {1}, {1},
                            {1}),
                convolution("bfloat16", floats({1, 2, 4, 4}, 1, DType::kBF16),
                            floats({2, 2, 3, 3}, 2, DType::kBF16), kNone, {1}, {1}, {1})},
      .large = {convolution("large", floats({13, 24, 15, 14}), floats({36, 8, 3, 3}, 2), bias(36),
                            {1, 2}, {1}, {1}, false, {0}, 3),
                convolution("large transposed", floats({9, 12, 14, 15}), floats({12, 16, 4, 3}, 2),
                            bias(16), {2}, {1}, {1}, true, {1})}};
  table["convolution_backward"] = {
      .calls = {convolution_backward("all", floats({1, 3, 4, 5}), floats({1, 2, 4, 5}, 2),
                                     floats({3, 2, 3, 3}, 4), {1}, {1}, {1}, false, {0}, 1,
                                     {true, true, true}),
                convolution_backward("input only", floats({1, 3, 2, 3}), floats({1, 2, 4, 5}, 2),
                                     floats({3, 2, 3, 3}, 4), {1}, {0}, {1}, false, {0}, 1,
                                     {true, false, false}),
                convolution_backward("weight and bias", floats({2, 4, 3}), floats({2, 2, 7}, 2),
                                     floats({4, 1, 3}, 4), {2}, {0}, {1}, false, {0}, 2,
                                     {false, true, true}),
                convolution_backward("transposed", floats({1, 3, 6, 4}), floats({1, 2, 3, 3}, 2),
                                     floats({2, 3, 3, 2}, 4), {2, 1}, {1, 0}, {1}, true, {1, 0}, 1,
                                     {true, true, true})},
      .large = {convolution_backward("large", floats({13, 36, 15, 7}), floats({13, 24, 15, 14}, 2),
                                     floats({36, 8, 3, 3}, 3), {1, 2}, {1}, {1}, false, {0}, 3,
                                     {true, true, true})}};
  table["conv1d"] = {.calls = {call("batch", floats({2, 2, 6}), floats({3, 2, 3}, 2), bias(3)),
                               call("no batch", floats({2, 6}), floats({2, 1, 3}, 2))
                                   .with("stride", Dims{2})
                                   .with("padding", Dims{1})
                                   .with("groups", 2)}};
  table["conv2d"] = {
      .calls = {call("batch", floats({1, 2, 4, 4}), floats({2, 2, 3, 3}, 2), bias(2)),
                call("no batch", floats({2, 5, 4}), floats({2, 2, 2, 2}, 2))
                    .with("padding", Dims{1, 0})
                    .with("dilation", Dims{2, 1})}};
  table["conv3d"] = {
      .calls = {call("batch", floats({1, 2, 3, 3, 3}), floats({2, 2, 2, 2, 2}, 2), bias(2)),
                call("no batch", floats({2, 3, 3, 3}), floats({2, 2, 2, 2, 2}, 2))}};
  table["conv_transpose1d"] = {
      .calls = {call("batch", floats({2, 2, 4}), floats({2, 3, 3}, 2), bias(3)),
                call("no batch", floats({2, 4}), floats({2, 3, 3}, 2))
                    .with("stride", Dims{2})
                    .with("output_padding", Dims{1})}};
  table["conv_transpose2d.input"] = {
      .calls = {call("batch", floats({1, 2, 3, 3}), floats({2, 2, 2, 3}, 2), bias(2)),
                call("no batch", floats({2, 3, 2}), floats({2, 1, 2, 2}, 2))
                    .with("stride", Dims{2, 1})
                    .with("output_padding", Dims{1, 0})
                    .with("groups", 2)}};
  table["conv_transpose3d.input"] = {
      .calls = {call("batch", floats({1, 1, 2, 2, 2}), floats({1, 2, 2, 1, 2}, 2), bias(2)),
                call("no batch", floats({2, 2, 2, 2}), floats({2, 1, 2, 2, 2}, 2))}};
  table["conv1d.padding"] = {.calls = {call("valid", floats({2, 2, 5}), floats({3, 2, 3}, 2)),
                                       call("same", floats({2, 5}), floats({3, 2, 2}, 2), bias(3),
                                            Dims{1}, "same", Dims{1})}};
  table["conv2d.padding"] = {.calls = {call("same", floats({1, 2, 4, 3}), floats({4, 1, 2, 3}, 2),
                                            bias(4), Dims{1, 1}, "same", Dims{1, 2}, 2),
                                       call("valid", floats({1, 2, 4, 3}), floats({3, 2, 2, 3}, 2),
                                            kNone, Dims{2, 1}, "valid", Dims{1, 1})}};
  table["conv3d.padding"] = {
      .calls = {call("same", floats({1, 1, 3, 2, 2}), floats({2, 1, 2, 1, 2}, 2), kNone, Dims{1},
                     "same", Dims{1})}};
}

}  // namespace lockstep
