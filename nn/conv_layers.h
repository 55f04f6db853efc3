#pragma once

#include <cstdint>

#include "nn/module.h"
#include "nn/spatial_size.h"

namespace lockstep::nn {

/// What a convolution reads outside its input.
enum class PaddingMode : uint8_t { kZeros, kReflect, kReplicate, kCircular };

/// Options of a convolution, with PyTorch's defaults.
struct ConvOptions {
  SpatialSize stride = 1;
  SpatialSize padding = 0;
  SpatialSize dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  PaddingMode padding_mode = PaddingMode::kZeros;
};

/// Options of a transposed convolution, with PyTorch's defaults.
struct ConvTransposeOptions {
  SpatialSize stride = 1;
  SpatialSize padding = 0;
  SpatialSize output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  SpatialSize dilation = 1;
};

/// What convolutions over any number of dimensions have in common (core/ops/conv/conv.h). x [batch,
/// in, spatial...], the batch optional; W [out, in / groups, kernel...]. W and bias are initialised
/// as PyTorch does: uniform within +-1 / sqrt(in / groups * elements of the kernel), which is
/// Kaiming uniform with a = sqrt(5). Throws ShapeError if `groups` does not divide in and out.
class Convolution : public Module {
 public:
  Tensor forward(const Tensor& x) const;

  Tensor weight;
  Tensor bias;  ///< undefined when there is none

 protected:
  Convolution(size_t spatial, int64_t in, int64_t out, const SpatialSize& kernel,
              ConvOptions options);
  /// With these values for the weight and a bias of 0.
  Convolution(size_t spatial, int64_t in, int64_t out, const SpatialSize& kernel,
              ConvOptions options, FillValues weights);
  Convolution(Convolution&&) noexcept = default;

 private:
  Tensor convolve(const Tensor& x) const;

  size_t spatial_;
  ConvOptions options_;
};

/// Convolution over one dimension: x [batch, in, length].
class Conv1d : public Convolution {
 public:
  Conv1d(int64_t in, int64_t out, const SpatialSize& kernel, ConvOptions options = {})
      : Convolution(1, in, out, kernel, std::move(options)) {}
};

/// Convolution over three dimensions: x [batch, in, depth, height, width].
class Conv3d : public Convolution {
 public:
  Conv3d(int64_t in, int64_t out, const SpatialSize& kernel, ConvOptions options = {})
      : Convolution(3, in, out, kernel, std::move(options)) {}
};

/// What transposed convolutions have in common: x as above, W [in, out / groups, kernel...],
/// initialised uniform within +-1 / sqrt(out / groups * elements of the kernel), as is the bias.
class TransposedConvolution : public Module {
 public:
  Tensor forward(const Tensor& x) const;

  Tensor weight;
  Tensor bias;  ///< undefined when there is none

 protected:
  TransposedConvolution(size_t spatial, int64_t in, int64_t out, const SpatialSize& kernel,
                        ConvTransposeOptions options);
  TransposedConvolution(TransposedConvolution&&) noexcept = default;

 private:
  size_t spatial_;
  ConvTransposeOptions options_;
};

class ConvTranspose1d : public TransposedConvolution {
 public:
  ConvTranspose1d(int64_t in, int64_t out, const SpatialSize& kernel,
                  ConvTransposeOptions options = {})
      : TransposedConvolution(1, in, out, kernel, std::move(options)) {}
};

class ConvTranspose2d : public TransposedConvolution {
 public:
  ConvTranspose2d(int64_t in, int64_t out, const SpatialSize& kernel,
                  ConvTransposeOptions options = {})
      : TransposedConvolution(2, in, out, kernel, std::move(options)) {}
};

class ConvTranspose3d : public TransposedConvolution {
 public:
  ConvTranspose3d(int64_t in, int64_t out, const SpatialSize& kernel,
                  ConvTransposeOptions options = {})
      : TransposedConvolution(3, in, out, kernel, std::move(options)) {}
};

}  // namespace lockstep::nn
