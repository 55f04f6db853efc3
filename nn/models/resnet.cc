#include "nn/models/resnet.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/ops/image/pool.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "nn/run_blocks.h"

namespace lockstep::nn {

namespace {

/// FLOPs per sample of a convolution with a result of height * width.
double conv_flops(const Conv2d& conv, int64_t height, int64_t width) {
  return 2.0 * static_cast<double>(conv.weight.numel()) * static_cast<double>(height * width);
}

int64_t halved(int64_t size) { return (size + 1) / 2; }

int64_t stem_kernel(const ResnetOptions& o) { return o.stem == ResnetStem::kSmall ? 3 : 7; }

Conv2dOptions stem_options(const ResnetOptions& o) {
  return {.stride = o.stem == ResnetStem::kSmall ? 1 : 2, .padding = stem_kernel(o) / 2};
}

int64_t last_width(const ResnetOptions& o) {
  const bool whole = std::ranges::all_of(o.blocks, [](int64_t count) { return count >= 1; });
  LS_CHECK(!o.blocks.empty() && whole, ShapeError,
           "[resnet] expected at least one stage, and at least one block in each, got {}.",
           to_string(IntList(o.blocks)));
  return o.base_width << (o.blocks.size() - 1);
}

}  // namespace

BasicBlock::BasicBlock(int64_t in, int64_t out, int64_t stride)
    : conv1(in, out, 3, {.stride = stride, .padding = 1}),
      bn1(out),
      conv2(out, out, 3, {.padding = 1}),
      bn2(out),
      options_hash_(block_options_hash({static_cast<double>(stride)})) {
  register_module("conv1", conv1);
  register_module("bn1", bn1);
  register_module("conv2", conv2);
  register_module("bn2", bn2);
  if (in == out && stride == 1) return;
  downsample_conv = std::make_unique<Conv2d>(in, out, 1, Conv2dOptions{.stride = stride});
  downsample_norm = std::make_unique<BatchNorm2d>(out);
  register_module("downsample.0", *downsample_conv);
  register_module("downsample.1", *downsample_norm);
}

Tensor BasicBlock::forward(const Tensor& x) {
  const auto pass = [this](const Tensor& input) { return run(input); };
  return run_forward(
      [&](const Tensor& input) { return run_block({.numbers = options_hash_}, pass, input); }, x);
}

Tensor BasicBlock::run(const Tensor& x) {
  const Tensor skip = downsample_conv ? downsample_norm->forward(downsample_conv->forward(x)) : x;
  const Tensor middle = relu(bn1.forward(conv1.forward(x)));
  return relu(bn2.forward(conv2.forward(middle)) + skip);
}

Resnet::Resnet(const ResnetOptions& options)
    : conv1(options.channels, options.base_width, stem_kernel(options), stem_options(options)),
      bn1(options.base_width),
      fc(last_width(options), options.classes, true, Init{.uniform = true}),
      options_(options) {
  register_module("conv1", conv1);
  register_module("bn1", bn1);
  int64_t in = options.base_width;
  for (size_t stage = 0; stage < options.blocks.size(); ++stage) {
    const int64_t out = options.base_width << stage;
    auto& blocks = stages.emplace_back();
    for (int64_t i = 0; i < options.blocks[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      blocks.push_back(std::make_unique<BasicBlock>(in, out, stride));
      register_module(fmt::format("layer{}.{}", stage + 1, i), *blocks.back());
      in = out;
    }
  }
  register_module("fc", fc);
}

Tensor Resnet::forward(const Tensor& inputs) {
  return run_forward([this](const Tensor& images) { return run(images); }, inputs);
}

std::vector<BasicBlock*> Resnet::blocks() const {
  std::vector<BasicBlock*> list;
  for (const auto& stage : stages) {
    for (const auto& block : stage) list.push_back(block.get());
  }
  return list;
}

std::vector<Module*> Resnet::sequence() const {
  const std::vector<BasicBlock*> list = blocks();
  return {list.begin(), list.end()};
}

Tensor Resnet::run(const Tensor& inputs) {
  const std::vector<int64_t> shape = input_shape();
  LS_CHECK(inputs.dim() == 4 && same(inputs.sizes().subspan(1), shape), ShapeError,
           "[resnet] expected images [batch, {}, {}, {}], got {}.", shape[0], shape[1], shape[2],
           inputs.shape());
  Tensor x = relu(bn1.forward(conv1.forward(inputs)));
  if (options_.stem == ResnetStem::kImageNet) x = max_pool2d(x, {3}, {2}, {1});
  const std::vector<BasicBlock*> list = blocks();
  x = run_blocks(list.size(), recompute(), x,
                 [list](size_t i, const Tensor& input) { return list[i]->forward(input); });
  return fc.forward(adaptive_avg_pool2d(x, {1}).flatten(1));
}

double Resnet::forward_flops() const {
  int64_t height = options_.height, width = options_.width;
  const bool small = options_.stem == ResnetStem::kSmall;
  if (!small) height = halved(height), width = halved(width);
  double flops = conv_flops(conv1, height, width);
  if (!small) height = halved(height), width = halved(width);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    if (stage > 0) height = halved(height), width = halved(width);
    for (const auto& block : stages[stage]) {
      flops += conv_flops(block->conv1, height, width) + conv_flops(block->conv2, height, width);
      if (block->downsample_conv) flops += conv_flops(*block->downsample_conv, height, width);
    }
  }
  return flops + 2.0 * static_cast<double>(fc.weight.numel());
}

}  // namespace lockstep::nn
