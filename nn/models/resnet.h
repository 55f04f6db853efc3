#pragma once

#include <memory>
#include <vector>

#include "nn/classifier.h"
#include "nn/image_layers.h"
#include "nn/layers.h"

namespace lockstep::nn {

/// The layers before a ResNet's first stage.
enum class ResnetStem : uint8_t {
  kSmall,     ///< a 3x3 convolution: the first stage has the size of the image
  kImageNet,  ///< a 7x7 convolution of stride 2, then max pooling of 3x3 with stride 2
};

/// Shape of a ResNet (He et al. 2016) of basic blocks. Defaults are ResNet-18 for 32x32 images.
struct ResnetOptions {
  int64_t channels = 3;
  int64_t height = 32;
  int64_t width = 32;
  int64_t classes = 10;
  /// Channels of the first stage; each further stage doubles them and halves height and width.
  int64_t base_width = 64;
  std::vector<int64_t> blocks = {2, 2, 2, 2};  ///< number of blocks per stage; at least one stage
  ResnetStem stem = ResnetStem::kSmall;
};

/// Residual block of two 3x3 convolutions with batch norm. The input is added to their result,
/// through a 1x1 convolution if its shape changes.
class BasicBlock : public Module {
 public:
  BasicBlock(int64_t in, int64_t out, int64_t stride);
  /// x [batch, in, height, width] -> [batch, out, ceil(height / stride), ceil(width / stride)].
  Tensor forward(const Tensor& x);

  Conv2d conv1;
  BatchNorm2d bn1;
  Conv2d conv2;
  BatchNorm2d bn2;
  std::unique_ptr<Conv2d> downsample_conv;  ///< null if the shape does not change
  std::unique_ptr<BatchNorm2d> downsample_norm;

 private:
  Tensor run(const Tensor& x);

  uint64_t options_hash_;
};

/// Names are torchvision's: conv1, bn1, layer1.0.conv1, ..., layer2.0.downsample.0, ..., fc.
class Resnet final : public Classifier {
 public:
  explicit Resnet(const ResnetOptions& options);

  Tensor forward(const Tensor& inputs) override;
  std::vector<Module*> sequence() const override;
  std::vector<int64_t> input_shape() const override {
    return {options_.channels, options_.height, options_.width};
  }
  int64_t classes() const override { return options_.classes; }
  double forward_flops() const override;

  Conv2d conv1;
  BatchNorm2d bn1;
  std::vector<std::vector<std::unique_ptr<BasicBlock>>> stages;
  Linear fc;

 private:
  Tensor run(const Tensor& inputs);
  std::vector<BasicBlock*> blocks() const;

  ResnetOptions options_;
};

}  // namespace lockstep::nn
